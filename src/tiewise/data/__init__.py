"""Runs and judgments as frozen columns, ids as codes, and the data frames of other libraries."""
