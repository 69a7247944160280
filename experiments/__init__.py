"""Experiments: what papers print, computed again. Each is a module to run: ``python -m experiments.rankbiased``."""
