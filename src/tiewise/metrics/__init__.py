"""Measures: their definition, names and parser, the arithmetic of expectation and extremes, and the catalogue."""
