"""The compiled closed forms give the numbers of the general path, which NumPy computes, for random lists."""

import random

import numpy as np
import pytest

import tiewise as tw
from tiewise.data.native import native
from tiewise.metrics.compiled import tables_of
from tiewise.ties.counted import Counted

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled reader is not installed")

MEASURES = (
    *("nDCG", "nDCG@3", "nDCG(gains='exp')@5", "nDCG(gains='1=5,2=3')@4", "DCG@5", "AP", "AP@3", "AP(rel=2)@20", "RR"),
    *("AP(norm='cap')@2", "RR@3", "RR(rel=2)", "P", "P@3", "R", "R@5", "F1@3", "F(beta=2)@4", "Hits", "Hits@3"),
    *("Success", "Success@2", "RBP(p=0.8)", "RBP(p=0.5)@4", "RBP(p=0.9, gains='graded', max=4)", "Rprec", "Judged@5"),
)
COLUMNS = ("expected", "minimum", "maximum", "variance", "oblivious", "residual")
QRELS = tw.Qrels.from_dict({"q": {"a": 1, "b": 2, "c": 0}, "r": {"a": 1}})


def counted(length):
    """The judged documents in lists of a length."""
    one, rank = np.ones(len(QRELS), np.int64), np.array([0, 1, 2, 0])
    of_lists = np.full(2, length), np.ones(2, bool), np.zeros(2), np.ones(2, np.int64)
    return Counted.of(tw.TieGroups(QRELS, one.astype(float), rank, one, *of_lists))


def draw(seed):
    """Judgments and lists with many ties; some lists are empty or missing, some labels negative or fractional."""
    chance = random.Random(seed)
    docs = [f"d{number}" for number in range(chance.choice([4, 12, 40]))]
    labels = chance.choice([[0, 1], [0, 0, 1, 2, 4], [-1, 0, 1, 3], [0, 0.5, 1.5]])
    qrels, run = {}, {}
    for query in map(str, range(chance.randint(1, 6))):
        qrels[query] = {doc: chance.choice(labels) for doc in chance.sample(docs, chance.randint(1, len(docs)))}
        if chance.random() < 0.9:
            levels, listed = chance.choice([1, 2, 5, 1000]), chance.sample(docs, chance.randint(0, len(docs)))
            run[query] = {doc: chance.randint(0, levels) / 3 for doc in listed}
    qrels["more"], run["more"] = {"d0": 1, "d1": 0}, {"d0": 1.0, "d1": 1.0 + 1e-12, "x": 0.0}
    if seed % 5 == 4:  # most lists have one length, as if they were truncated
        run = {query: dict([*scores.items()][:2]) for query, scores in run.items()}
    names = ("trec_eval", "pytrec_eval", "given", "docid-asc", None)
    options = {"oblivious": chance.choice(names), "depth": chance.choice([None, None, 3]), "complete": seed % 3 == 0}
    return qrels, run, options


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
@pytest.mark.parametrize("door", [lambda run: run, tw.Run.from_dict], ids=["dictionary", "columns"])
@pytest.mark.parametrize("start", range(0, 200, 20))
def test_compiled_closed_forms_are_those_of_numpy(door, start, monkeypatch):
    for seed in range(start, start + 20):
        qrels, run, options = draw(seed)
        found = tw.evaluate(qrels, door(run), MEASURES, **options)
        for measure in MEASURES:
            found.per_query(measure)  # made now, by the compiled path
        with monkeypatch.context() as patch:
            patch.setenv("TIEWISE_READER", "python")
            expected = tw.evaluate(qrels, run, MEASURES, **options)
            for measure in MEASURES:
                one, other = found.per_query(measure), expected.per_query(measure)
                for name in COLUMNS:
                    pair = getattr(one, name), getattr(other, name)
                    assert (pair[0] is None) == (pair[1] is None), (measure, name)
                    if pair[0] is not None:
                        np.testing.assert_allclose(*pair, rtol=1e-13, atol=1e-13, err_msg=f"{seed} {measure} {name}")
                assert (one.cut is None) == (other.cut is None), (seed, measure)
                if one.cut is not None:
                    np.testing.assert_allclose(one.cut, other.cut, rtol=1e-13, atol=1e-13, err_msg=f"{seed} {measure}")


def test_the_usual_measures_have_tables():
    usual = ("nDCG@10", "DCG", "AP", "RR", "P@10", "R@100", "F1@5", "Hits", "Success", "RBP", "Rprec", "Judged@10")
    assert list(tables_of(tuple(map(tw.parse, usual)), counted(1000)).rows) == [tw.parse(name) for name in usual]
    assert not tables_of((tw.parse("ERR"),), counted(1000)).rows
    both = tw.parse("AP"), tw.parse("AP@100")
    assert list(tables_of(both, counted(2**16)).rows) == list(both)
    assert list(tables_of(both, counted(2**16 + 1)).rows) == [both[1]]  # one has a table of too many weights
    assert not tables_of((tw.parse("nDCG(judged_only=True)"),), counted(10)).rows


def test_a_measure_that_overrides_a_part_takes_the_general_path():
    class Late(type(tw.AP)):
        """The divisor is another one."""

        def divisor(self, q):
            return 2.0

    class Half(type(tw.P)):
        """The depth depends on the length of the list."""

        def depth(self, q):
            return (q.length + 1) // 2

    class Bounded(type(tw.P)):
        """Lists that may be truncated have other bounds."""

        value_range = (0.0, 1.0)

    class Same(type(tw.P)):
        """Nothing is overridden."""

    assert list(tables_of((Late(), Half(), Bounded(), Same()), counted(10)).rows) == [Same()]
