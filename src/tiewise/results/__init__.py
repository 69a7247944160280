"""One table model (`model`), a module for each format, one for wording, and the base of public results (`results`)."""
