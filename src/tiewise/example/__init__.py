"""A small real data set, read with `importlib.resources`; README.md beside this file says how it was made."""
