"""What scoring again would change: the noise that two runs of one system show, and what it does to measures."""

from tiewise.analysis.rerun.residuals import ScoreNoise, score_noise

__all__ = ["ScoreNoise", "score_noise"]
