"""Rankings compared with sets and with other rankings: RBP, RBR, RBO, RBA, τ, similarity of runs, first stages."""
