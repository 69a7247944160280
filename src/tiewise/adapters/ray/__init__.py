"""Runs and embeddings in shards, counted by the workers of a Ray cluster.

    from tiewise.adapters import ray
    report = ray.evaluate("qrels.txt", "shards/", ["nDCG@10", "RR@10"])

Counts of shards add up, so a report is equal, to the last bit, to that of the whole run on one machine. Shards may be
split by query or by document; Tiewise detects which. In the first pass each shard counts for itself and returns the
scores of its judged documents. If no query was in two shards, that is all. Otherwise the judged scores of all shards
are sent to each shard, every shard counts for them, and the counts are added. Rows never leave the worker that reads
them.

`evaluate` takes runs, as files or as a Ray data set; `count` does the same and leaves the measuring to
`tiewise.evaluate`; `evaluate_vectors` takes embeddings and needs no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tiewise.adapters.ray.cluster import Workers, connect, load_blocks
from tiewise.adapters.ray.shards import RunCounter, ShardCounter, ShardedRun, ShardPaths, list_shards, merge_shards
from tiewise.adapters.ray.vectors import QueryVectors, VectorCounter, read_query_vectors
from tiewise.analysis import evaluating as evaluation
from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import OptionNames, Options, Unpack, takes_options
from tiewise.analysis.reports import Report
from tiewise.data.progress import Progress
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import TOOLS, Rule, rule_for

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["count", "evaluate", "evaluate_vectors"]

MeasureNames: TypeAlias = str | Measure | Iterable[str | Measure]
Shards: TypeAlias = "ShardPaths | Dataset"


@takes_options()
def evaluate(
    qrels: Any,
    shards: Shards,
    measures: MeasureNames = DEFAULT_MEASURES,
    *,
    tools: bool = False,
    format: str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[OptionNames],
) -> Report:
    """A `Report` of a run in shards, equal to the last bit to that of the whole run on one machine.

    `shards` are files that every worker can read, in any format of `tiewise.read_run` (a path, a folder, a pattern
    such as ``shards/*.trec.gz``, or several of these), or a ``ray.data.Dataset`` with the columns ``query_id``,
    ``doc_id`` and ``score``. A folder means all its files and those of its subfolders, except names that begin with
    ``.`` or ``_``. Documents may be divided among shards in any way, but each document is in one shard only.

    The order ``"given"`` follows the order of the shards; ``"rank"`` can be used if no query is in two shards.

    - `tools`: also count what `Report.oblivious_by_tool` needs.
    - `format`: the format of the files, if it is not to be detected.
    - `address`: of a Ray cluster. Without it, the cluster that this process is connected to is used, or that of the
      variable RAY_ADDRESS; else one is started on this machine and stopped at the end.
    - `progress`: called with ``(done, total)`` files read; a run split by query stops at half of the total.
    {options}
    """
    checked, chosen = Options.of("evaluate", options), resolve_measures(measures)
    counted = ("oblivious", "score_dtype", "judged_only", "drop_self", "distances")
    how: dict[str, Any] = {name: getattr(checked, name) for name in counted} | {"format": format, "progress": progress}
    run = count(qrels, shards, chosen, tools=tools, address=address, **how)
    return evaluation.evaluate(None, run, chosen, **options)


def count(
    qrels: Any,
    shards: Shards,
    measures: MeasureNames = DEFAULT_MEASURES,
    *,
    oblivious: str | None = "trec_eval",
    score_dtype: str | None = None,
    judged_only: bool = False,
    drop_self: bool = False,
    distances: bool = False,
    tools: bool = False,
    format: str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> ShardedRun:
    """A run in shards as its tie groups, counted for some measures: ``tiewise.evaluate(None, run, …)`` takes it.

    Arguments are those of `evaluate`. `measures` only matter where `oblivious` names a tool whose tie-break order or
    score type depends on the measure.
    """
    edits = {"drop_self": Options(oblivious=oblivious, score_dtype=score_dtype).drop_self or drop_self}
    edits["distances"] = distances
    orders = _tie_orders(resolve_measures(measures), oblivious, tools)
    counter = RunCounter(as_qrels(qrels), orders, format, score_dtype=score_dtype, judged_only=judged_only, **edits)
    files = _list_files(shards)
    with connect(address) as ray:
        return _count_shards(ray, counter, files, progress)


def evaluate_vectors(
    qrels: Any,
    queries: QueryVectors,
    shards: Shards,
    measures: MeasureNames = DEFAULT_MEASURES,
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
    """A `Report` of the ranking of all documents by embeddings in shards, without making a run.

    `shards` are Parquet files (paths, folders and patterns, as for `evaluate`), or a ``ray.data.Dataset``, with a
    column of ids and one of vectors. `queries` is such a file, an Arrow table, or a pair of ids and a matrix. Columns
    are found by name; the first of these names that exists is used:

    - ids: ``id``, ``_id``, or a name of documents or queries in a data frame, such as ``doc_id``;
    - vectors: ``vector``, ``embedding``, ``embeddings``, ``vectors``, ``emb``, ``values``.

    `fn` and `precision` are those of `tiewise.scoring.tie_groups`, which counts in each shard; the result is the same
    as on one machine. `device`: ``"cuda"`` gives each GPU of the cluster to an actor, ``"cpu"`` uses none; without it,
    GPUs are used if there are any. All workers need the same kind of GPU, because products of different kinds differ
    in their last bits.
    """
    options = OptionNames(oblivious=oblivious, missing=missing, no_relevant=no_relevant, depth=depth)
    Options(**options)  # raises if one is invalid
    if device not in ("cuda", "cpu", None):
        raise InputError(f"device is 'cuda', 'cpu' or None, not {device!r}.")
    chosen, judgments = resolve_measures(measures), as_qrels(qrels)
    orders = {"float64": _tie_orders(chosen, oblivious, tools=False)["float64"]}
    vectors, files = read_query_vectors(queries, fn, precision), _list_files(shards)
    with connect(address) as ray:
        gpus = 0 if device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        if device == "cuda" and not gpus:
            raise InputError("The Ray cluster has no GPU. Leave out device, or add a machine with a GPU.")
        counter = VectorCounter(judgments, orders, vectors, fn, precision, gpu=gpus > 0)
        run = _count_shards(ray, counter, files, progress, gpus)
    return evaluation.evaluate(None, run, chosen, **options)


def _list_files(shards: Shards) -> list[str] | Dataset:
    """The shard files, listed before Ray starts; a data set as it is."""
    return shards if hasattr(shards, "map_batches") and hasattr(shards, "iter_rows") else list_shards(shards)


def _count_shards(
    ray: Any, counter: ShardCounter, shards: list[str] | Dataset, progress: Progress | None, gpus: int = 0
) -> ShardedRun:
    if isinstance(shards, list):
        parts, names = shards, shards
    else:
        parts = load_blocks(ray, shards, ordered=any("given" in orders for orders in counter.orders.values()))
        names = [f"block {number}" for number in range(len(parts))]
    return merge_shards(counter, Workers(ray, counter, parts, names, progress, gpus).count, names)


def _tie_orders(measures: Sequence[Measure], oblivious: str | None, tools: bool) -> dict[str, list[str]]:
    """The tie-break orders to count for, by score type."""
    rules: list[Rule | None] = [rule_for(oblivious, measure) for measure in measures] if oblivious else []
    if tools:
        rules += [tool.rule(measure) for tool in TOOLS.values() for measure in measures]
    orders: dict[str, set[str]] = {"float64": set()}
    for rule in rules:
        if rule is not None and rule.order:
            orders.setdefault(rule.dtype, set()).add(rule.order)
    return {dtype: sorted(some) for dtype, some in orders.items()}
