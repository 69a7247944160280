"""Makers of the rows of `protocol`: `vectors` and `logits`. They are public in `tiewise.rows`."""
