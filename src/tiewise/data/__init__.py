"""Runs and judgments as immutable columns, ids as codes; data frames of other libraries."""
