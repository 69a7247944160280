"""Recipes: Tiewise beside packages that are too heavy or too rare for the tests. `make recipes` runs them all."""
