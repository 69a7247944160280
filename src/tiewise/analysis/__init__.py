"""What is said of runs: evaluation, comparison, audit, unjudged documents and significance."""
