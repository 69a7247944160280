"""Columns of text in any order and with any separator: which column is the query, the document and the number.

A header that names the columns says it. Without one the first rows must allow exactly one reading: scores fall within
each query, and ranks count up from 1. Two readings, or none, are an error: it shows a line and the option that says
which columns these are. The separators are tabs, commas, semicolons, bars or blanks.

Columns in an order that the readers of text do not know are rewritten as lines with one tab between the query, the
document and the number.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, RANK_NAMES, Table, find_name, swapped_message
from tiewise.errors import InputError

SEPARATORS = ("\t", ",", ";", "|", "")  # the empty one: blanks
QUOTED = ('\t"', ' "')  # tabs and blanks between cells in quotation marks, which must have a header in them
SEPARATOR_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", "": "blanks"}
MAX_LABEL = 10  # whole scores up to it may be labels
MIN_STEPS = 4  # numbers that count up by as many steps are ranks, not labels
MAX_WIDTH = 6  # columns without a header
MAX_ROWS = 2000  # of the first rows, which show the reading
INTEGER = re.compile(r"[-+]?[0-9]+")
CELL = re.compile(r"[^ \t\n\v\f\r]+")  # between blanks of ASCII
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
MOST = 0.8  # of the first rows: the reader reports the others
HEADER_DOC_NAMES = (*DOC_NAMES, "document")  # in a data frame it may be a text
#: What shows the reading of rows without a header, for messages.
EXPECTED = {Run: "scores that fall, or ranks that count up, in each query", Qrels: "two ids and a label"}
NOT_NUMBERS = ("nan", "none", "null", "na", "n/a", "-", "")  # in place of a score
ENCODING = ("utf-8", "surrogateescape")  # an id that is not UTF-8 is reported by the reader

Row = list[str]


class ColumnOrder(NamedTuple):
    """The columns of a file: the role of each, "" if it is ignored, what separates them, and the first rank."""

    roles: tuple[str, ...]
    separator: str
    has_header: bool = False
    first_rank: int = 1

    def place(self, role: str) -> int:
        """The place of the column with a role."""
        return self.roles.index(role)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are used, in the order of the lines that `rewrite` makes."""
        return tuple(role for role in ("query", "document", "rank", "score", "label") if role in self.roles)

    @property
    def is_rewritten(self) -> bool:
        """Whether the reader of text does not know this order."""
        return self.roles != self.columns or self.separator not in ("\t", "") or not self.first_rank

    def with_first_rank(self, rows: list[Row]) -> ColumnOrder:
        """The same with the first rank of some rows, if ranks are all that is known of their order."""
        is_ranked = "rank" in self.roles and "score" not in self.roles
        return self._replace(first_rank=int(not any(is_ranked and row[self.place("rank")] == "0" for row in rows)))


def split_rows(lines: Iterable[str], separator: str) -> Iterator[tuple[Row, int]]:
    """The cells of each row, and the number of its last line, from 1. Cells between commas may be quoted.

    >>> list(split_rows(['q1,"d 1",0.5\\n'], ","))
    [(['q1', 'd 1', '0.5'], 1)]
    """
    if not separator:
        yield from ((CELL.findall(line), number) for number, line in enumerate(lines, 1))
        return
    if separator == "\t":
        rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        rows = csv.reader(lines, delimiter=separator[0], strict=True, skipinitialspace=True)
    for row in rows:
        yield [cell.strip() for cell in row], rows.line_num


def split_line(line: bytes, separator: str) -> Row:
    """The cells of one line; none if its quotation marks are wrong."""
    try:
        return next(iter(split_rows([line.decode(*ENCODING)], separator)), ([], 0))[0]
    except csv.Error:
        return []


# -- finding the columns ------------------------------------------------------------------------------------------


def find_columns(cls: type[Table], sample: bytes, where: str) -> ColumnOrder | None:
    """The columns of a file from its first rows; `where` is the place of the first one, for messages.

    None if there is no header, and nothing divides the rows into three to six columns.

    >>> find_columns(Run, b"q1,d1,0.5\\nq1,d2,0.25\\n", "run.csv:1")
    ColumnOrder(roles=('query', 'document', 'score'), separator=',', has_header=False, first_rank=1)
    >>> find_columns(Run, b"rank docno qid score\\n1 d1 q1 0.5\\n", "run.txt:1")
    ColumnOrder(roles=('rank', 'document', 'query', 'score'), separator='', has_header=True, first_rank=1)
    """
    parts = _parts(sample)
    for separator, rows in parts.items():
        if names_columns(rows[0]):
            return _order_of_names(cls, rows[0], rows[1:], separator, where)
    parts = {separator: rows for separator, rows in parts.items() if len(rows[0]) <= MAX_WIDTH}
    if not parts:
        return None
    fitting = [
        ColumnOrder(roles, separator)
        for separator, rows in parts.items()
        for roles, fits in ARRANGEMENTS[cls]
        if len(roles) == len(rows[0]) and fits(rows, roles)
    ]
    # Blanks, too, divide "q1, d1, 0.5" into three.
    fitting = [one for one in fitting if one.separator] or fitting
    if any(one.roles == ("query", "document", "rank") for one in fitting):  # ids that count up by chance are few
        fitting = [one for one in fitting if one.roles != ("query", "score", "document")]
    if len(fitting) != 1 or fitting[0].roles in RIVALS:
        raise InputError(f"{where}: {_explain(cls, parts, fitting)}")
    first = parts[fitting[0].separator][0]
    if not any(map(is_number, first)) and not any(cell.lower() in NOT_NUMBERS for cell in first):
        shown = ", ".join(map(repr, first))
        advice = _advice(cls, first, fitting)
        raise InputError(f"{where}: looks like a header, but {shown} do not name a query and a document. {advice}")
    if cls is Qrels:
        _refuse_scores(parts[fitting[0].separator], fitting[0], where)
    return fitting[0].with_first_rank(parts[fitting[0].separator])


def named_columns(cls: type[Table], names: str, sample: bytes, where: str) -> ColumnOrder:
    """The columns that an option names, such as ``query,doc,score``; a name that is none is a column to ignore.

    >>> named_columns(Run, "doc,-,query,score", b"d1 x q1 0.5\\n", "run.txt:1")
    ColumnOrder(roles=('document', '', 'query', 'score'), separator='', has_header=False, first_rank=1)
    """
    roles = check_names(cls, names)
    parts = {mark: rows for mark, rows in _parts(sample, equal=False).items() if len(rows[0]) == len(roles)}
    if not parts:
        text = sample.split(b"\n")[0][:60].decode(errors="replace")
        raise InputError(f"{where}: {text!r} has not {len(roles)} columns ({names}).")
    separator = next(iter(parts))
    number = next(roles.index(name) for name in ("score", "label", "rank") if name in roles)
    first = parts[separator][0]
    has_header = not any(map(is_number, first)) and re.fullmatch(r"[^\W\d][\w .-]*", first[number]) is not None
    order = ColumnOrder(roles, separator, has_header and len(parts[separator]) > 1)
    return order.with_first_rank(parts[separator])


def check_names(cls: type[Table], names: str) -> tuple[str, ...]:
    """The roles of the columns that an option names."""
    roles = tuple(_role(cls, name.strip().lower()) for name in names.split(","))
    numbers = ("score", "rank") if cls is Run else ("label",)
    twice = len([role for role in roles if role]) > len({role for role in roles if role})
    if twice or not {"query", "document"} <= {*roles} or not {*numbers} & {*roles}:
        example = "query,doc,score" if cls is Run else "query,doc,label"
        raise InputError(
            f"Columns {names!r}: name query, doc and {' or '.join(numbers)} once each, such as {example!r}; '-' is a "
            "column to ignore."
        )
    return roles


def _role(cls: type[Table], name: str) -> str:
    if find_name([name], QUERY_NAMES):
        return "query"
    if find_name([name], HEADER_DOC_NAMES):
        return "document"
    if name in RANK_NAMES:
        return "rank" if cls is Run else ""
    return ("score" if cls is Run else "label") if find_name([name], cls.value_names) else ""


def _parts(sample: bytes, separators: Sequence[str] = SEPARATORS, *, equal: bool = True) -> dict[str, list[Row]]:
    """The first rows, by each separator that divides them; with `equal`, into the same number of columns from 3 on.

    Where a header has a name less than the rows, as of R and of printed data frames, their numbers are an index.
    """
    lines = sample.decode(*ENCODING).split("\n")
    lines = [f"{line}\n" for line in lines if line.strip() and not line.lstrip().startswith("#")][:MAX_ROWS]
    found = {}
    for separator in (*separators, *(QUOTED if lines and lines[0].count('"') > 4 else ())):
        rows: list[Row] = []
        with suppress(csv.Error):  # a quotation mark that is none, which is reported when the file is read
            rows.extend(row for row, _ in split_rows(lines, separator))
        if not rows or len(rows[0]) < 3 or (separator in QUOTED and not names_columns(rows[0])):
            continue
        if _has_index(rows):
            rows[0] = ["", *rows[0]]
        regular = [row for row in rows if len(row) == len(rows[0])]
        if not equal or len(regular) >= MOST * len(rows) or names_columns(rows[0]):
            found[separator] = regular
    return found


def _has_index(rows: list[Row]) -> bool:
    """Whether all rows have a cell more than a header, and it counts up."""
    if len(rows) < 2 or any(len(row) != len(rows[0]) + 1 for row in rows[1:]) or not names_columns(rows[0]):
        return False
    return _is_index(rows[1:])


def _is_index(rows: list[Row]) -> bool:
    """Whether the first cells of all rows count up."""
    index = [row[0] for row in rows]
    return any(index == [str(start + place) for place in range(len(index))] for start in (0, 1))


def names_columns(cells: Sequence[str]) -> bool:
    """Whether cells are a header: they name a query and a document column, and none is a number."""
    if any(map(is_number, cells)):
        return False
    return find_name(cells, QUERY_NAMES) is not None and find_name(cells, HEADER_DOC_NAMES) is not None


def _order_of_names(cls: type[Table], names: list[str], rows: list[Row], separator: str, where: str) -> ColumnOrder:
    """The columns that a header names: of several names for one thing the first, as in data frames."""
    wanted = {"query": QUERY_NAMES, "document": HEADER_DOC_NAMES, "number": cls.value_names}
    if cls is Run:
        wanted["rank"] = RANK_NAMES
    chosen = {}
    for role, known in wanted.items():
        name = find_name(names, known)
        if name is not None:
            if names.count(name) > 1:
                raise InputError(f"{where}: two columns are called {name!r}. {_advice(cls, names)}")
            chosen[role] = names.index(name)
    other: type[Table] = Qrels if cls is Run else Run
    other_name = find_name(names, [name for name in other.value_names if name not in cls.value_names])
    if "number" not in chosen and other_name is not None:
        if rows and (cls is Run) != _may_be_labels(rows, names.index(other_name)):
            noun, others = ("score", "qrels") if cls is Run else ("label", "runs")
            found = f"the header names no {noun}, but {other_name!r}, as {others} have"
            raise InputError(f"{where}: {found}. If it is one, s{_advice(cls, names)[1:]}")
        raise InputError(f"{where}: looks like {swapped_message(cls, f'column {other_name!r}')}")
    if cls is Run and "number" in chosen and is_beir_header(names) and _may_be_labels(rows, chosen["number"]):
        raise InputError(f"{where}: looks like {swapped_message(cls, 'BEIR header')}")
    if "number" not in chosen and "rank" not in chosen:
        found = ", ".join(map(repr, names))
        known_names = ", ".join(cls.value_names[:4])
        if any("dist" in name.lower() for name in names):
            advice = _advice(cls, names).replace(" (in", " --distances (in").replace("')", "', distances=True)")
            raise InputError(
                f"{where}: the header names no score, but {found}. Of a distance, the score is -distance. {advice}"
            )
        raise InputError(
            f"{where}: the header names no {cls.value_names[0]} ({known_names}), but {found}. {_advice(cls, names)}"
        )
    roles = [""] * len(names)
    for role, place in chosen.items():
        roles[place] = ("score" if cls is Run else "label") if role == "number" else role
    order = ColumnOrder(tuple(roles), separator, has_header=True)
    order = order.with_first_rank([row for row in rows if len(row) == len(roles)])
    is_score = "number" in chosen and names[chosen["number"]].lower() == "score"
    if cls is Qrels and is_score and rows and {*map(len, rows)} == {len(names)}:
        _refuse_scores(rows, order, where)
    return order


def is_beir_header(names: Sequence[str]) -> bool:
    """Whether these are the names of BEIR's judgments."""
    return list(names) == ["query-id", "corpus-id", "score"]


# -- what rows look like ------------------------------------------------------------------------------------------


def is_number(text: str) -> bool:
    """Whether a text is a finite or infinite number."""
    try:
        return float(text) == float(text) and "_" not in text
    except ValueError:
        return False


def _readable(rows: list[Row], number: int) -> list[Row]:
    """The rows with a number; none if too many have none."""
    found = [row for row in rows if is_number(row[number])]
    return found if len(found) >= MOST * len(rows) else []


def _lists(rows: list[Row], query: int, value: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row[query], []).append(float(row[value]))
    return found


def _is_contiguous(rows: list[Row], query: int) -> bool:
    heads = [row[query] for place, row in enumerate(rows) if not place or rows[place - 1][query] != row[query]]
    return len(heads) == len(set(heads))


def _holds_ids(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether queries and documents look like ids, and no document is twice in a query."""
    query, document = roles.index("query"), roles.index("document")
    pairs = {(row[query], row[document]) for row in rows}
    fractions = any(all(is_number(row[place]) and "." in row[place] for row in rows) for place in (query, document))
    return len(pairs) == len(rows) and not fractions and all(all(row) for row in pairs)


def _falls(rows: list[Row], roles: Sequence[str], sign: int = 1) -> bool:
    """Whether the scores of each query fall, with the sign -1 rise, and at least once they are not equal."""
    number = roles.index("score")
    lists = _lists(_readable(rows, number), roles.index("query"), number).values()
    steps = [sign * (one - two) for values in lists for one, two in pairwise(values) if one != two]
    return bool(steps) and min(steps) > 0


def _counts_up(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether the ranks of each query are 1, 2, 3 …, or 0, 1, 2 …: few of these, without scores, may be labels."""
    query, rank = roles.index("query"), roles.index("rank")
    if _counts_from(1, rows, query, rank):
        return True
    longest = max(Counter(row[query] for row in rows).values())
    return ("score" in roles or longest > MIN_STEPS) and _counts_from(0, rows, query, rank)


def _are_ranks(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether the ranks of each query are 1 to n, or 0 to n - 1, in any order."""
    ordered = sorted(
        rows, key=lambda row: float(row[roles.index("rank")]) if is_number(row[roles.index("rank")]) else 0
    )
    return any(_counts_from(first, ordered, roles.index("query"), roles.index("rank")) for first in (0, 1))


def _counts_from(first: int, rows: list[Row], query: int, rank: int) -> bool:
    """Whether whole numbers count up in each query."""
    if not all(INTEGER.fullmatch(row[rank]) for row in rows):
        return False
    return all(values == [*range(first, first + len(values))] for values in _lists(rows, query, rank).values())


def _is_whole(number: str) -> bool:
    """Whether a number is written without a fraction, or is a label with one, such as 1.0."""
    return INTEGER.fullmatch(number) is not None or float(number) in range(-MAX_LABEL, MAX_LABEL + 1)


def _may_be_labels(rows: list[Row], number: int) -> bool:
    """Whether numbers are small and whole, as labels are."""
    values = [row[number] for row in rows if number < len(row)]
    return all(INTEGER.fullmatch(value) and -MAX_LABEL <= int(value) <= MAX_LABEL for value in values)


def _fits_scores(rows: list[Row], roles: Sequence[str]) -> bool:
    is_falling = _holds_ids(rows, roles) and _falls(rows, roles)
    return is_falling and not _may_be_labels(rows, roles.index("score"))


def _fits_ranks(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether ranks count up, and beyond 1: labels of one relevant document for each query are all 1."""
    has_second = len({row[roles.index("rank")] for row in rows}) > 1
    return has_second and _holds_ids(rows, roles) and _counts_up(rows, roles)


def _fits_swapped_ranks(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether what stands for scores are ranks. Some tools write rank 0 in all rows, and whole scores may count up."""
    return len({row[roles.index("score")] for row in rows}) > 1 and _fits_ranks(rows, roles)


def _fits_both(rows: list[Row], roles: Sequence[str]) -> bool:
    return _fits_ranks(rows, roles) and _falls(rows, roles) and _is_constant(rows, roles)


def _fits_trec(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether rows are those of TREC, between commas or tabs."""
    rank, number = roles.index("rank"), roles.index("score")
    is_named = all(row[1].upper() in ("Q0", "0") and INTEGER.fullmatch(row[rank]) for row in rows)
    return is_named and _holds_ids(rows, roles) and bool(_readable(rows, number))


def _is_constant(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether columns without a role hold one value each, such as Q0 or a tag."""
    return all(len({row[place] for row in rows}) == 1 for place, role in enumerate(roles) if not role)


def _fits_constant_scores(rows: list[Row], roles: Sequence[str]) -> bool:
    return _fits_scores(rows, roles) and _is_constant(rows, roles)


def _fits_rival(rows: list[Row], roles: Sequence[str]) -> bool:
    """Whether a reading that no tool writes fits: lists are contiguous, and some have several rows."""
    query = roles.index("query")
    if not _is_contiguous(rows, query) or len({row[query] for row in rows}) == len(rows):
        return False
    if "rank" in roles and not _counts_up(rows, roles):
        return False
    signs = (1, -1) if roles[0] == "document" else (1,)  # -1: distances
    is_sorted = "score" not in roles or any(_falls(rows, roles, sign) for sign in signs)
    return is_sorted and _holds_ids(rows, roles)


def _fits_labels(rows: list[Row], roles: Sequence[str]) -> bool:
    number, document = roles.index("label"), roles.index("document")
    values = [row[number] for row in rows]
    if not _holds_ids(rows, roles) or not all(map(is_number, values)):
        return False
    # Small numbers before large ones: labels and then numeric ids.
    swapped = _may_be_labels(rows, document) and all(map(INTEGER.fullmatch, values))
    return not (swapped and max(int(value) for value in values) > MAX_LABEL)


def _fits_constant_labels(rows: list[Row], roles: Sequence[str]) -> bool:
    return _is_constant(rows, roles) and _fits_labels(rows, roles)


def _fits_small_labels(rows: list[Row], roles: Sequence[str]) -> bool:
    return _fits_constant_labels(rows, roles) and _may_be_labels(rows, roles.index("label"))


def _has_rows_of_index(rows: list[Row]) -> bool:
    """Whether the first column counts the rows, as of pandas, and those of a query, in the second, are contiguous."""
    return _is_index(rows) and _is_contiguous(rows, 1)


Arrangement = tuple[tuple[str, ...], Callable[[list[Row], Sequence[str]], bool]]

#: Readings of rows without a header that no tool writes: if one of them fits, too, it is not known which is right.
RIVALS = (
    ("document", "query", "score"),
    ("document", "query", "rank"),
    ("score", "query", "document"),
    ("query", "rank", "document"),
    ("query", "score", "document"),
    ("query", "rank", "document", "score"),
)
#: Orders of the columns of TREC's files that are wrong, and can be told from the rows.
WRONG_ORDERS: dict[type[Table], tuple[Arrangement, ...]] = {
    Run: (
        (("query", "", "document", "score", "rank", ""), _fits_swapped_ranks),
        (("query", "", "rank", "document", "score", ""), _fits_both),
        (("document", "", "query", "rank", "score", ""), _fits_both),
    ),
    Qrels: (
        (("query", "document", "label", ""), _fits_small_labels),
        (("query", "", "label", "document"), _fits_small_labels),
    ),
}
#: The readings of rows without a header, and what must hold for each.
ARRANGEMENTS: dict[type[Table], tuple[Arrangement, ...]] = {
    Run: (
        (("query", "document", "score"), _fits_scores),
        (("query", "document", "rank"), _fits_ranks),
        (("query", "document", "rank", "score"), _fits_both),  # ColBERT, PLAID
        (("query", "document", "score", "rank"), _fits_both),
        (("query", "", "document", "score"), _fits_constant_scores),
        (("query", "document", "score", ""), _fits_constant_scores),
        (
            ("", "query", "document", "score"),
            lambda rows, roles: _has_rows_of_index(rows) and _fits_scores(rows, roles),
        ),
        (("query", "", "document", "rank", "score"), _fits_both),
        (("query", "document", "rank", "score", ""), _fits_both),
        (("query", "", "document", "rank", "score", ""), _fits_trec),
        *((roles, _fits_rival) for roles in RIVALS),
    ),
    Qrels: (
        (("query", "document", "label"), _fits_labels),
        (("query", "", "document", "label"), _fits_constant_labels),
        (
            ("", "query", "document", "label"),
            lambda rows, roles: _has_rows_of_index(rows) and _fits_labels(rows, roles),
        ),
    ),
}


def check_order(cls: type[Table], sample: bytes, roles: Sequence[str], where: str) -> None:
    """Raise if the rows of a usual layout are a run for judgments, or if their columns are in another order."""
    parts = [rows for rows in _parts(sample, ("\t", "")).values() if len(rows[0]) == len(roles)]
    rows = parts[0] if parts else []
    if not rows or (cls is Qrels and not all(is_number(row[-1]) for row in rows)):
        return
    if cls is Qrels:
        _refuse_scores(rows, ColumnOrder(tuple(roles), ""), where)
    usual = tuple(role if role in ("query", "document", "rank", "score", "label") else "" for role in roles)
    if cls is Run and _are_ranks(rows, usual):
        return
    if cls is Qrels and _fits_constant_labels(rows, usual):
        return
    for order, fits in WRONG_ORDERS[cls]:
        if len(order) == len(usual) and fits(rows, order):
            names = ",".join(map(_spell, order))
            raise InputError(
                f"{where}: the columns look like {names}: {' '.join(rows[0])[:60]!r}. {_say_columns(cls, names)} If "
                f"they are TREC's, say {'--input-format' if cls is Run else '--qrels-format'} trec."
            )
    if cls is Qrels and _holds_ids(rows, usual) and not _fits_labels(rows, usual):
        raise InputError(f"{where}: {_explain(Qrels, {'': rows}, [])}")


def _refuse_scores(rows: list[Row], order: ColumnOrder, where: str) -> None:
    """Raise if labels look like the scores or ranks of a run."""
    number = order.place("label")
    as_scores = ["score" if role == "label" else role for role in order.roles]
    as_ranks = ["rank" if role == "label" else role for role in order.roles]
    values = [row[number] for row in rows]
    distinct = len({*values}) > len(values) / 2
    has_fractions = sum(not _is_whole(value) for value in values) > len(values) / 2
    is_trec = "iteration" in order.roles and rows[0][order.roles.index("iteration")] == "0"  # of a run, it is Q0
    if has_fractions and distinct and not is_trec and _falls(rows, as_scores):
        raise InputError(f"{where}: looks like {swapped_message(Qrels, 'scores that fall')}")
    steps = len(rows) - len({row[order.place("query")] for row in rows})
    if steps >= MIN_STEPS and _counts_up(rows, as_ranks):
        raise InputError(f"{where}: looks like {swapped_message(Qrels, 'ranks that count up')}")


def _explain(cls: type[Table], parts: dict[str, list[Row]], fitting: list[ColumnOrder]) -> str:
    """Why the columns are not known, with the first line and the option that names them."""
    separator, rows = next(iter(parts.items())) if parts else ("", [[""]])
    if cls is Run and not fitting and _looks_like_qrels(rows):
        return f"looks like {swapped_message(cls, f'{len(rows[0])} columns')}"
    if cls is Qrels and len(rows[0]) == 6:
        return f"looks like {swapped_message(cls, '6 columns')}"
    text = (SEPARATOR_NAMES[separator], separator.join(rows[0]) if separator else " ".join(rows[0]))
    number = f"{len(rows[0])} columns between {text[0]}" if separator else f"{len(rows[0])} columns"
    shown = text[1] if len(text[1]) <= 60 else f"{text[1][:60]}…"
    if fitting:
        several = " or ".join(",".join(_spell(role) for role in one.roles) for one in fitting)
        problem = f"may be {several}" if len(fitting) > 1 else f"look like {several}, an order that no tool writes"
    else:
        problem = f"fit no {cls.noun}: no order of the columns has {EXPECTED[cls]}, and no document twice"
        if cls is Run and len(rows[0]) == 3 and _may_be_labels(rows, 2):
            problem = "may be a run or judgments"
        if cls is Run and len(rows[0]) == 3 and _counts_from(0, rows, 0, -1):
            problem += " (ranks from 0?)"
            fitting = [ColumnOrder(("query", "document", "rank"), separator)]
        elif cls is Run and len(rows[0]) == 3 and _falls(rows, ("query", "document", "score"), -1):
            problem += ", and the numbers rise, as distances do (write these with a minus)"
        if any(map(DECIMAL_COMMA.fullmatch, rows[0])):
            problem += " (write numbers with a decimal point)"
    return f"{number} {problem}: {shown!r}. {_advice(cls, rows[0], fitting[-1:])}"


def _looks_like_qrels(rows: list[Row]) -> bool:
    """Whether rows are judgments: a small whole number after a document, and perhaps an iteration before it."""
    width = len(rows[0])
    is_trec = width == 4 and len({row[1] for row in rows}) == 1 and rows[0][1].lower() in ("0", "q0", "1")
    return is_trec and _may_be_labels(rows, width - 1)


def _spell(role: str) -> str:
    return "doc" if role == "document" else role or "-"


def _advice(cls: type[Table], cells: Sequence[str], fitting: Sequence[ColumnOrder] = ()) -> str:
    """The option that names the columns, for as many columns."""
    number = "score" if cls is Run else "label"
    if names_columns(cells):
        known = {find_name(cells, QUERY_NAMES): "query", find_name(cells, HEADER_DOC_NAMES): "doc"}
        roles = [known.get(name, "-") for name in cells]
        roles[next((place for place, role in enumerate(roles) if role == "-"), -1)] = number
        return _say_columns(cls, ",".join(roles))
    usual = {3: f"query,doc,{number}", 4: "query,doc,rank,score", 5: "query,-,doc,rank,score"}
    usual |= {} if cls is Run else {4: "query,-,doc,label", 5: "query,-,doc,label,-"}
    default = usual.get(len(cells), ",".join(["query", "doc", number, *["-"] * (len(cells) - 3)]))
    return _say_columns(cls, ",".join(_spell(role) for role in fitting[0].roles) if fitting else default)


def _say_columns(cls: type[Table], names: str) -> str:
    option = f"--input-columns {names}" if cls is Run else f"--qrels-format columns:{names}"
    python = f"input_columns='{names}'" if cls is Run else f"format='columns:{names}'"
    return f"Say which columns these are: {option} (in Python, {python})."


# -- rewriting ----------------------------------------------------------------------------------------------------


def rewrite(blocks: Iterable[bytes], order: ColumnOrder, name: str) -> Iterator[bytes]:
    """Blocks of whole lines as lines of the columns that are used, between tabs; line numbers stay.

    >>> list(rewrite([b'0.5,"d 1",q1\\n'], ColumnOrder(("score", "document", "query"), ","), "run.csv"))
    [b'q1\\td 1\\t0.5\\n']
    """
    line_at = [""]  # the last line that was read

    def read_lines() -> Iterator[str]:
        for block in blocks:  # the last line may lack its line break
            for line_at[0] in bytes(block).decode(*ENCODING).removesuffix("\n").split("\n"):
                yield f"{line_at[0]}\n"

    places = [order.place(role) for role in order.columns]
    rows, n_lines = split_rows(read_lines(), order.separator), 0
    has_header = order.has_header
    pending: list[str] = []
    try:
        for row, line in rows:
            pending += [""] * (line - n_lines - 1)
            n_lines = line
            if not any(row) or line_at[0].lstrip().startswith("#"):
                pending.append("")
            elif has_header:
                has_header = False
                pending.append("")
            else:
                pending.append(_rewrite_row(row, order, places, f"{name}:{line}"))
            if len(pending) >= 1 << 14:
                yield "\n".join([*pending, ""]).encode(*ENCODING)
                pending = []
    except csv.Error as error:
        raise InputError(f"{name}:{n_lines + 1}: {error}. Check the quotation marks.") from None
    if pending:
        yield "\n".join([*pending, ""]).encode(*ENCODING)


def _rewrite_row(row: Row, order: ColumnOrder, places: Sequence[int], where: str) -> str:
    if len(row) != len(order.roles):
        names = ", ".join(map(_spell, order.roles))
        raise InputError(f"{where}: {len(row)} columns instead of {len(order.roles)} ({names}): {row[:6]!r}")
    cells = [row[place] for place in places]
    if not order.first_rank and INTEGER.fullmatch(rank := row[order.place("rank")]):
        cells[order.columns.index("rank")] = str(int(rank) + 1)
    if not all(cells):
        raise InputError(f"{where}: an empty {order.columns[cells.index('')]}: {row[:6]!r}")
    text = "\t".join(cells)
    if text.count("\t") >= len(cells) or "\n" in text or "\r" in text or text.startswith("#"):
        raise InputError(f"{where}: an id has a tab or a line break, or a query begins with '#': {cells!r}")
    return text
