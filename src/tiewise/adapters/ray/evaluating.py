"""The doors: runs and embeddings in shards in, a `Report` out, as `tiewise.evaluate` would give of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from tiewise.adapters.ray.cluster import Blocks, Division, Progress, Tasks, joined, said
from tiewise.adapters.ray.gathering import Gathered, Sums
from tiewise.adapters.ray.listing import described, paths
from tiewise.adapters.ray.vectors import VectorCounter, query_vectors
from tiewise.adapters.ray.working import Counter, Reading, RunCounter
from tiewise.analysis import evaluating as evaluation
from tiewise.analysis.evaluating import DEFAULT_MEASURES, check_options
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.readings import CountedRun, Facts
from tiewise.analysis.reports import Report
from tiewise.errors import InputError, counted
from tiewise.io import as_qrels
from tiewise.metrics.definition import Measure
from tiewise.metrics.tools import TOOLS, Rule, rule_for

__all__ = ["ShardedRun", "count", "evaluate", "evaluate_vectors"]

Names = str | Measure | Iterable[str | Measure]


@dataclass(frozen=True, eq=False)
class ShardedRun(CountedRun):
    """A run that was counted in shards: what `tiewise.evaluate` takes in place of a run."""

    shards: int = 0
    cut: Literal["query", "document"] = "query"  # whether each query was in one shard
    moved: int = 0  # bytes of scores and counts that workers sent

    def __repr__(self) -> str:
        rows = "" if self.facts.rows is None else f", {self.facts.rows:,} rows"
        return f"<ShardedRun: {counted(self.shards, 'shard')} cut by {self.cut}{rows}, {self.moved:,} bytes moved>"


def evaluate(
    qrels: Any,
    shards: Any,
    measures: Names = DEFAULT_MEASURES,
    *,
    oblivious: str | None = "trec_eval",
    missing: Literal["zero", "skip", "error"] = "zero",
    no_relevant: Literal["zero", "skip"] = "zero",
    score_dtype: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    complete: bool = False,
    tools: bool = False,
    format: str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """A `Report` of a run in shards, equal to the last bit to that of the whole run on one machine.

    `shards` are files that every worker can read, in any format that `tiewise.read_run` knows (a path, a folder, a
    pattern such as ``shards/*.trec.gz``, or several of these), or a ``ray.data.Dataset`` with the columns ``query_id``,
    ``doc_id`` and ``score``. Of a folder all files are read, and those of its folders, but for names that begin with
    ``.`` or ``_``. Documents may be divided among shards in any way, but each stands in one shard only.

    - The options up to `complete` are those of `tiewise.evaluate`. Tied documents are ``"given"`` in the order of the
      shards; ``"rank"`` can be used if no query is in two shards.
    - `tools`: count for all that `Report.oblivious_by_tool` needs, too.
    - `format`: that of the files, if it is not to be recognised.
    - `address`: that of a Ray cluster. Without one, the Ray that this process has joined already is used, or that of
      the variable RAY_ADDRESS, or one is started on this machine until the work is done.
    - `progress`: told ``(done, total)`` readings of files; half of them are enough if the run was cut by query.
    """
    check_options(oblivious, missing, no_relevant, score_dtype, depth)
    chosen = resolve_measures(measures)
    how: dict[str, Any] = {"oblivious": oblivious, "score_dtype": score_dtype, "judged_only": judged_only}
    run = count(qrels, shards, chosen, **how, tools=tools, format=format, address=address, progress=progress)
    left: dict[str, Any] = {"missing": missing, "no_relevant": no_relevant, "depth": depth, "complete": complete}
    return evaluation.evaluate(None, run, chosen, **how, **left)


def count(
    qrels: Any,
    shards: Any,
    measures: Names = DEFAULT_MEASURES,
    *,
    oblivious: str | None = "trec_eval",
    score_dtype: str | None = None,
    judged_only: bool = False,
    tools: bool = False,
    format: str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> ShardedRun:
    """A run in shards as its tie groups, counted for some measures: ``tiewise.evaluate(None, run, …)`` takes it.

    Arguments are those of `evaluate`. `measures` matter only as far as `oblivious` reads scores otherwise for some.
    """
    check_options(oblivious, "zero", "zero", score_dtype, None)
    judged = as_qrels(qrels)
    orders = _orders(resolve_measures(measures), oblivious, tools)
    counter = RunCounter(judged, orders, score_dtype, judged_only, format)
    kept = {one: counter.orders_of(one) for one in counter.readings}
    shards = _found(shards)
    with joined(address) as ray:
        ordered = any("given" in some for some in orders.values())
        division, names = _divided(ray, counter, shards, ordered, progress)
        gathered, sums, cut, moved = _passes(division, counter, names, kept)
    whole = "a data set of Ray" if names is None else described(names)
    return ShardedRun(
        sums.groups(gathered.scores, frozenset(gathered.unjudged)),
        gathered.facts(whole, score_dtype is not None),
        score_dtype,
        judged_only,
        shards=gathered.shards,
        cut=cut,
        moved=moved,
    )


def evaluate_vectors(
    qrels: Any,
    queries: Any,
    shards: Any,
    measures: Names = DEFAULT_MEASURES,
    *,
    fn: str = "dot",
    precision: str = "float32",
    oblivious: str | None = "trec_eval",
    missing: Literal["zero", "skip", "error"] = "zero",
    no_relevant: Literal["zero", "skip"] = "zero",
    depth: int | None = None,
    device: Literal["cuda", "cpu"] | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """A `Report` of the ranking of all documents by their embeddings, which lie in shards; no run is ever made.

    `shards` are Parquet files (paths, folders and patterns, as for `evaluate`), or a ``ray.data.Dataset``, with a
    column of ids and one of vectors. `queries` is such a file, or a pair of ids and a matrix. Of columns with these
    names, the first that there is is taken:

    - ids: ``id``, ``_id``, ``doc_id``, ``docno``, ``docid``, ``doc``, ``corpus_id``, ``corpus-id``, ``did``, ``pid``,
      ``item_id``, ``query_id``, ``qid``, ``query``, ``q_id``, ``query-id``, ``topic``, ``topic_id``;
    - vectors: ``vector``, ``embedding``, ``embeddings``, ``vectors``, ``emb``, ``values``.

    `fn` and `precision` are those of `tiewise.scoring.tie_groups`, which counts in each shard, and whose result on one
    machine this equals. `device`: ``"cuda"`` gives each GPU of the cluster to an actor, ``"cpu"`` uses none; without
    it, GPUs are used where there are any. All workers need the same kind of processor or GPU, as products differ in
    their last bits.
    """
    check_options(oblivious, missing, no_relevant, None, depth)
    if device not in ("cuda", "cpu", None):
        raise InputError(f"device is 'cuda', 'cpu' or None, not {device!r}.")
    chosen, judged = resolve_measures(measures), as_qrels(qrels)
    orders = sorted(_orders(chosen, oblivious, False)["float64"])
    vectors, shards = query_vectors(queries, fn, precision), _found(shards)
    with joined(address) as ray:
        gpus = 0 if device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        if device == "cuda" and not gpus:
            raise InputError("The Ray cluster has no GPU. Leave device out, or add a machine that has one.")
        counter = VectorCounter(judged, vectors, orders, fn, precision, gpu=gpus > 0)
        division, names = _divided(ray, counter, shards, "given" in orders, progress, gpus)
        gathered, sums, cut, moved = _passes(division, counter, names, {Reading("float64"): orders})
    ties = sums.groups(gathered.scores, counter.unjudged, complete=True)
    run = ShardedRun(ties, Facts(), shards=gathered.shards, cut=cut, moved=moved)
    left: dict[str, Any] = {"missing": missing, "no_relevant": no_relevant, "depth": depth}
    return evaluation.evaluate(None, run, chosen, oblivious=oblivious, **left)


def _found(shards: Any) -> Any:
    """The files that are meant, looked for before Ray is started; a data set as it is."""
    return shards if _is_data_set(shards) else paths(shards)


def _is_data_set(shards: Any) -> bool:
    return hasattr(shards, "map_batches") and hasattr(shards, "iter_rows")


def _divided(
    ray: Any, counter: Counter, shards: Any, ordered: bool, progress: Progress | None, gpus: int = 0
) -> tuple[Division, list[str] | None]:
    """The work divided, and the names of the files, if they are files."""
    if _is_data_set(shards):
        return Blocks(ray, counter, shards, ordered=ordered, gpus=gpus), None
    return Tasks(ray, counter, shards, progress, gpus), shards


def _passes(
    division: Division, counter: Counter, names: list[str] | None, orders: Mapping[Reading, Sequence[str]]
) -> tuple[Gathered, Sums, Literal["query", "document"], int]:
    """Both passes, or the first alone if it suffices; what they brought, how the shards were cut, and bytes moved."""
    qrels = counter.qrels
    gathered = Gathered(qrels, (lambda number: f"block {number}") if names is None else names.__getitem__)
    sums = Sums(qrels, orders)
    with closing(division.first()) as answers:
        for shard, note, counts in answers:
            found = said(note).found
            assert found is not None
            gathered.add(shard, found, len(note))
            if counter.once and gathered.apart:
                sums.add(counts())
    gathered.check_common()
    moved = gathered.moved + sums.moved
    if counter.once and gathered.apart:
        return gathered, sums, "query", moved
    _check_rank(orders)
    sums = Sums(qrels, orders)
    with closing(division.second(gathered.scores, gathered.sha256)) as parts:
        for part, size in parts:
            sums.add(part)
            moved += size
    sums.check_whole(gathered.scores)
    return gathered, sums, "document", moved


def _orders(measures: Sequence[Measure], oblivious: str | None, tools: bool) -> dict[str, tuple[str, ...]]:
    """The orders to count for, by the type in which scores are read."""
    rules: list[Rule | None] = [rule_for(oblivious, measure) for measure in measures] if oblivious else []
    if tools:
        rules += [tool.rule(measure) for tool in TOOLS.values() for measure in measures]
    found: dict[str, set[str]] = {"float64": set()}
    for rule in rules:
        if rule is not None and rule.order:
            found.setdefault(rule.dtype, set()).add(rule.order)
    return {dtype: tuple(sorted(orders)) for dtype, orders in found.items()}


def _check_rank(orders: Mapping[Reading, Sequence[str]]) -> None:
    if any("rank" in some for some in orders.values()):
        raise InputError(
            "There are queries in more than one shard, and the rank columns of shards do not make one ranking. Use "
            "oblivious='given' or another order."
        )
