"""Tie groups: what a measure needs to know of a ranking with ties, how they are counted, and how shards add up."""
