"""How fast Tiewise is beside the tools it replaces: ratios, taken in one interleaved run."""
