"""Queries and documents as texts, with judgments and perhaps candidates: from a folder, or from the Hugging Face hub.

A folder has the files of BEIR: ``queries.jsonl`` and ``corpus.jsonl`` (``_id``, ``title``, ``text``; compressed ones
too) and ``qrels.*``, in any format that `read_qrels` knows, or ``qrels/test.tsv``. For reranking it also has
``candidates.*``, a run whose order is the order of the data.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tiewise.caching import cached_property
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError, first_line, warn
from tiewise.io import read_qrels, read_run
from tiewise.io.compression import PathLike, opened
from tiewise.results.optional import need

CONTENTS = "A data folder has queries.jsonl, corpus.jsonl, qrels.* and, for reranking, candidates.*"
#: The splits of a data set of the hub, the first that there is.
SPLITS = ("test", "dev", "validation")
MANY_MISSING = 0.01  # of the judged documents: from here on, what no row can find is told


@dataclass(frozen=True, eq=False, repr=False)
class TextCollection:
    """Queries and documents by id, with judgments; `candidates` are the documents to rerank, in the order of the data.

    >>> texts = TextCollection("tiny", {"q": "who?"}, {"d": "she."}, Qrels.from_dict({"q": {"d": 1}}))
    >>> texts
    <TextCollection 'tiny': 1 query, 1 document, no candidates>
    """

    name: str
    queries: Mapping[str, str]  #: those with judgments
    docs: Mapping[str, str]
    qrels: Qrels
    candidates: Mapping[str, Sequence[str]] | None = None
    where: Mapping[str, str] | None = None  #: the files, for messages
    instruction: str | None = None  #: what to look for, for models that are told

    def __repr__(self) -> str:
        from tiewise.results.wording import count_noun

        candidates = "no" if self.candidates is None else "with"
        sizes = f"{count_noun(len(self.queries), 'query', 'queries')}, {count_noun(len(self.docs), 'document')}"
        return f"<TextCollection {self.name!r}: {sizes}, {candidates} candidates>"

    def __post_init__(self) -> None:
        where = {"queries": "queries", "docs": "corpus", "qrels": "qrels", "candidates": "candidates"}
        where |= self.where or {}
        self._check_judged(where)
        _require_known(self.qrels.queries, self.queries, "query", where["qrels"], where["queries"])
        for query, docs in (self.candidates or {}).items():
            _require_known([query], self.queries, "query", where["candidates"], where["queries"])
            _require_known(docs, self.docs, "document", where["candidates"], where["docs"])
            if len(set(docs)) < len(docs):
                twice = next(doc for place, doc in enumerate(docs) if doc in docs[:place])
                raise InputError(
                    f"{where['candidates']}: document '{twice}' occurs twice for query '{query}'. Keep one of them."
                )
        if self.candidates is not None and not self.pairs:
            raise InputError(f"{where['candidates']}: no query of it has judgments in {where['qrels']}.")

    def _check_judged(self, where: Mapping[str, str]) -> None:
        """Require judgments of these documents; a warning if many are of others."""
        judged = {doc for docs in self.qrels.to_dict().values() for doc in docs}
        missing = [doc for doc in judged if doc not in self.docs]
        if len(missing) < MANY_MISSING * len(judged) or not judged:
            return
        one = min(missing)
        if one in self.queries and self.qrels.queries[0] in self.docs:
            raise InputError(f"{where['qrels']}: queries and documents are swapped. Write the query first.")
        found = f"{where['qrels']}: {len(missing):,} of {len(judged):,} judged documents are not in {where['docs']}"
        if len(missing) == len(judged):
            raise InputError(f"{found}, such as '{one}'. Give the judgments of this corpus.")
        warn(f"{found}, such as '{one}': no row can find them. Add their texts, or remove the rows.")

    @cached_property
    def judged(self) -> list[str]:
        """The queries that have judgments, in the order of the data."""
        return [query for query in self.queries if query in self.qrels.query_index]

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The ids of each judged query and each of its candidates."""
        judged = [(query, docs) for query, docs in (self.candidates or {}).items() if query in self.qrels.query_index]
        return [(query, doc) for query, docs in judged for doc in docs]

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of what a model is given."""
        ids = self.pairs if self.candidates is not None else [(query, "") for query in self.judged]
        hashed = hashlib.sha256(json.dumps(ids).encode())
        used = {doc for _, doc in ids} if self.candidates is not None else self.docs
        for texts, known in ((self.queries, {query for query, _ in ids}), (self.docs, used)):
            hashed.update(json.dumps([(key, text) for key, text in texts.items() if key in known]).encode())
        return hashed.hexdigest()


def _require_known(ids: Iterable[str], texts: Mapping[str, str], what: str, where: str, missing_from: str) -> None:
    for one in ids:
        if one not in texts:
            raise InputError(f"{where}: {what} '{one}' is not in {missing_from}. Add its text, or remove the row.")


def read_collection(
    source: PathLike, *, revision: str | None = None, subset: str | None = None, split: str | None = None
) -> TextCollection:
    """The texts of a folder, or of a data set of the hub by its name.

    `revision`, `subset` (such as a language) and `split` are those of a data set of the hub.
    """
    if not isinstance(source, (str, os.PathLike)) or not str(source):
        raise InputError(f"Give the data as a folder, or a data set of the hub, not {source!r}.")
    folder = Path(source)
    if not folder.exists():
        if str(source).count("/") == 1 and not folder.is_absolute():
            return _read_hub(str(source), str(source), revision, subset, split)
        raise InputError(f"{source}: there is no such folder. {CONTENTS}; a data set of the hub is OWNER/NAME.")
    if not folder.is_dir():
        raise InputError(f"{source}: is a file. {CONTENTS}.")
    if any(folder.glob("queries.jsonl*")) or any(folder.glob("corpus.jsonl*")):
        return _read_folder(folder)
    if any(folder.rglob("*.parquet")) or (folder / "README.md").exists():  # a copy of a data set of the hub
        # The library's cache knows a folder by its name alone, and would return the texts of another one.
        with TemporaryDirectory() as cache:
            return _read_hub(str(folder), folder.name, None, subset, split, cache)
    raise InputError(f"{source}: holds no queries.jsonl. {CONTENTS}.")


# -- folders ------------------------------------------------------------------------------------------------------


def _read_folder(folder: Path) -> TextCollection:
    queries, corpus = (_require(folder, f"{name}.jsonl", f"{name}.jsonl*") for name in ("queries", "corpus"))
    judged = _require(folder, "qrels", "qrels.*", "qrels/test.*", "qrels/*")
    candidates = _find(folder, "candidates.*")
    where = {"queries": str(queries), "docs": str(corpus), "qrels": str(judged), "candidates": str(candidates)}
    lists = None
    if candidates is not None:
        lists = {query: list(docs) for query, docs in read_run(candidates).to_dict().items()}
    texts = _read_texts(queries), _read_texts(corpus)
    return TextCollection(folder.resolve().name, *texts, read_qrels(judged), lists, where)


def _require(folder: Path, what: str, *patterns: str) -> Path:
    found = _find(folder, *patterns)
    if found is None:
        raise InputError(f"{folder}: holds no {what}. {CONTENTS}.")
    return found


def _find(folder: Path, *patterns: str) -> Path | None:
    """The only file of the first pattern that has one."""
    for pattern in patterns:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) > 1:
            raise InputError(f"{folder}: holds {' and '.join(path.name for path in found[:2])}. Keep one of them.")
        if found:
            return found[0]
    return None


def _read_texts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    with opened(path) as stream:
        lines = stream.read().decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            one, text = str(row["_id"]), _text_of(row)
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f'{path}:{number}: is not {{"_id": …, "text": …}}. Write one such object a line.'
            ) from None
        if one in texts:
            raise InputError(f"{path}:{number}: the id '{one}' occurs twice. Keep one of them.")
        texts[one] = text
    return texts


def _text_of(row: Mapping[str, Any]) -> str:
    """The title and the text, as BEIR joins them."""
    return f"{row.get('title') or ''} {row['text']}".strip()


# -- data sets of the hub -----------------------------------------------------------------------------------------


def _read_hub(
    source: str, name: str, revision: str | None, subset: str | None, split: str | None, cache: str | None = None
) -> TextCollection:
    """A data set in one of MTEB's two layouts: corpus, queries, qrels and top_ranked; or lists of texts."""
    datasets = need("datasets", "A data set of the hub", "mteb")

    def load(config: str) -> Any:
        splits = datasets.get_dataset_split_names(source, config, revision=revision, cache_dir=cache)
        wanted = [split] if split else [*SPLITS, splits[0]]
        chosen = next((one for one in wanted if one in splits), splits[0] if len(splits) == 1 else None)
        if chosen is None:
            raise InputError(f"{name}: '{config}' has no split '{split}'. It has: {', '.join(splits)}.")
        return datasets.load_dataset(source, config, split=chosen, revision=revision, cache_dir=cache)

    with reaching_the_hub(source, "data set"):
        configs = datasets.get_dataset_config_names(source, revision=revision)
        before = f"{subset}-" if subset else ""
        if f"{before}corpus" not in configs:
            if subset is not None and subset not in configs:
                raise InputError(f"{name}: has no subset '{subset}'. It has: {', '.join(configs)}.")
            return _from_lists(name, load(subset or configs[0]))
        judged = next((one for one in (f"{before}qrels", subset or "default") if one in configs), None)
        if judged is None:
            raise InputError(f"{name}: has no qrels. It has: {', '.join(configs)}.")
        texts = [{_id_of(row): _text_of(row) for row in load(f"{before}{part}")} for part in ("queries", "corpus")]
        labels: dict[str, dict[str, float]] = {}
        for row in load(judged):
            labels.setdefault(str(row["query-id"]), {})[str(row["corpus-id"])] = float(row["score"])
        lists = None
        if f"{before}top_ranked" in configs:
            ranked = load(f"{before}top_ranked")
            lists = {str(row["query-id"]): [str(one) for one in row["corpus-ids"]] for row in ranked}
    return TextCollection(name, texts[0], texts[1], Qrels.from_dict(labels), lists)


def _id_of(row: Mapping[str, Any]) -> str:
    return str(row["_id"] if "_id" in row else row["id"])


def _from_lists(name: str, rows: Iterable[Mapping[str, Any]]) -> TextCollection:
    """Rows with a query, its relevant texts (``positive``) and others (``negative``), which come after them."""
    queries, docs = dict[str, str](), dict[str, str]()
    labels, lists = dict[str, dict[str, float]](), dict[str, list[str]]()
    for number, row in enumerate(rows):
        if not {"query", "positive", "negative"} <= row.keys():
            raise InputError(f"{name}: has neither a corpus nor query, positive and negative, but {', '.join(row)}.")
        query, texts = str(number), [*row["positive"], *row["negative"]]
        ids = [f"{number}-{place}" for place in range(len(texts))]
        queries[query], lists[query] = row["query"], ids
        docs.update(zip(ids, texts, strict=True))
        labels[query] = {one: float(place < len(row["positive"])) for place, one in enumerate(ids)}
    return TextCollection(name, queries, docs, Qrels.from_dict(labels), lists)


@contextmanager
def reaching_the_hub(name: str, what: str) -> Iterator[None]:
    """Turn what the libraries raise if the hub cannot be reached, or lacks something, into one line."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # no network, no such repository, or not in the cache
        kind = type(error).__name__
        if Path(name).exists():
            raise InputError(f"{name}: is no {what} in the layout of the hub ({kind}: {first_line(error)}).") from None
        raise InputError(
            f"There is no folder {name}, and the Hugging Face hub cannot be reached or has no such {what} ({kind})."
        ) from None
