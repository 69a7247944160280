"""Small rankings with ties, drawn at random, and the registered measures with parameters to try on them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import tiewise as tw
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties import tie_groups


@dataclass(frozen=True)
class Case:
    """Scores and labels in given order (None: unjudged), and the labels of judged documents not retrieved."""

    scores: list[float]
    labels: list[float | None]
    unretrieved: list[float]

    @property
    def docs(self) -> list[str]:
        return [f"d{place:02d}" for place in range(len(self.labels))]

    @property
    def run(self) -> Run:
        return Run.from_dict({"q": dict(zip(self.docs, self.scores, strict=True))})

    @property
    def qrels(self) -> Qrels:
        judged = {doc: label for doc, label in zip(self.docs, self.labels, strict=True) if label is not None}
        judged |= {f"u{place:02d}": label for place, label in enumerate(self.unretrieved)}
        return Qrels.from_dict({"q": judged})

    def grouped(self, *orders: str) -> GroupedJudgments:
        return GroupedJudgments(tie_groups(self.qrels, self.run, orders or ("given",)))


LABELS = st.one_of(st.none(), st.sampled_from([0, 1, 2, 3, 4, -1, -2, 0.5, 1.5, 0.25]))


@st.composite
def cases(draw: st.DrawFn, most: int = 7) -> Case:
    """A list of up to `most` documents whose scores take few values, in any order."""
    length = draw(st.integers(0, most))
    kinds = draw(st.integers(1, 4))
    scores = draw(st.lists(st.integers(0, kinds - 1), min_size=length, max_size=length))
    labels = draw(st.lists(LABELS, min_size=length, max_size=length))
    unretrieved = draw(st.lists(st.sampled_from([0, 1, 2, 4, -1, 0.5]), max_size=3))
    if all(label is None for label in labels) and not unretrieved:
        unretrieved = [0]
    return Case([score / 4 for score in scores], labels, [float(label) for label in unretrieved])


#: Parameters to try beside the defaults; every registered measure is tried with its defaults.
VARIANTS: dict[str, list[dict[str, object]]] = {
    "nDCG": [{"gains": "exp"}, {"gains": "0=1,1=5,2=-2"}],  # "binary" is tested by its own law
    "DCG": [{"gains": "exp"}],
    "AP": [{"rel": 2}, {"rel": 0}, {"norm": "cap"}],
    "RR": [{"rel": 2}],
    "P": [{"rel": 2}, {"rel": 0.5}, {"rel": 0}],
    "R": [{"rel": 2}],
    "F1": [{"rel": 2}],
    "F": [{"beta": 2}, {"beta": 0.5, "rel": 2}],
    "Hits": [{"rel": 2}],
    "Success": [{"rel": 3}],
    "Rprec": [{"rel": 2}],
    "Bpref": [{"rel": 2}, {"rel": 0}],
    "AUC": [{"rel": 2}, {"rel": 0}],
    "RBP": [{"p": 0.5}, {"p": 0.95, "rel": 2}, {"p": 0.8, "gains": "graded", "max": 4}],
    "ERR": [{"max": 5}],
    "nERR": [{"max": 5}],
    "SDCG": [{"max_rel": 4}],
    "INSQ": [{"T": 2.5, "max_rel": 4}],
    "INST": [{"T": 0.5}, {"T": 2, "max_rel": 4}, {"min_rel": 1, "max_rel": 3}],
    "BPM": [{"T": 0.75, "max_rel": 4}, {"T": 2, "max_rel": 3}, {"min_rel": 1, "max_rel": 2}],
    "NERR8": [{"max_rel": 4}, {"min_rel": 1, "max_rel": 2}],
    "NERR9": [{"max_rel": 4}],
    "NERR10": [{"p": 0.5, "max_rel": 4}, {"p": 0.99}],
    "NERR11": [{"T": 3, "max_rel": 4}],
    "Accuracy": [{"rel": 2}, {"rel": 0}],
    "Compat": [{"p": 0.5, "normalize": False}],
    "SetP": [{"rel": 2}],
    "SetR": [{"rel": 2}],
    "NumRel": [{"rel": 2}],
    "NumRelRet": [{"rel": 2}],
    "RprecMult": [{"multiple": 0.4}, {"multiple": 1.6, "rel": 2}],
    "RelativeP": [{"rel": 2}],
    "SetF": [{"x": 2.0, "rel": 2}],
    "SetAP": [{"rel": 2}],
    "Utility": [{"a": 2.0, "b": -1.0, "c": 1.0, "d": -0.5, "collection": 50}, {"b": 3.0, "rel": 2}],
    "NumNonrelJudgedRet": [{"rel": 2}],
    "infAP": [{"rel": 2}, {"rel": 0}],
    "YAAP": [{"rel": 2}],
    "IPrec": [{"recall": 0.3}, {"recall": 0.7, "rel": 2, "offset": 0.9}, {"recall": 1.0}],
    "ElevenPointAP": [{"points": "0.2,0.5,0.8"}],
    "binG": [{"rel": 2}],
    "G": [{"gains": "1=2,3=7"}, {"gains": "0=1,1=5,2=-2"}],
    "RnDCG": [{"gains": "0=1,1=5,2=-2"}, {"rel": 2}],
    "nDCGRel": [{"gains": "1=2,3=7"}, {"gains": "0=1,1=5,2=-2"}],
    "TrecRBP": [{"p": 0.5, "gains": "1=5"}],
    "RBPresid": [{"p": 0.5}],
    "GMAP": [{"rel": 2}],
    "GMBpref": [{"rel": 2}],
}

#: Every registered measure of the catalogue, with its parameters as the oracle takes them.
MEASURES: list[tuple[tw.Measure, dict[str, object]]] = [
    (measure(**params), params)
    for name, measure in tw.measures().items()
    # Measures of two rankings: test_rankings.py; of judgments for subtopics: test_diversity.py.
    if not measure.compares and not measure.needs_subtopics
    for params in [{"beta": 1.0} if name == "F" else {}, *VARIANTS.get(name, [])]
]
