"""Write what the documentation takes from the code: whole pages, parts of pages, and pictures.

    python scripts/make_docs.py            write what has changed
    python scripts/make_docs.py --check    say what has changed and fail; nothing is written

`docs/cli.md` comes from the commands, `docs/api.md` from docstrings, `docs/json.md` from the columns of results, and
`docs/speed.md` from the results of the benchmarks. In pages written by hand, what stands between
``<!-- made: NAME -->`` and ``<!-- end -->`` is replaced. The tests fail if a page differs from what this gives.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import make_figures
from benchmarks import ray_page
from benchmarks.whole_page import PAGE as SPEED_PAGE
from benchmarks.whole_page import whole_page

import tiewise as tw
from tiewise.adapters.index import INDEX_KEYS
from tiewise.analysis.auditing.audits import AUDIT_COLUMNS, AUDIT_KEYS
from tiewise.analysis.causes import ADVICE, WHY_COLUMNS, WHY_KEYS
from tiewise.analysis.comparison.result import COMPARISON_COLUMNS
from tiewise.analysis.leaderboard_result import CELL_COLUMNS, LEADERBOARD_COLUMNS, LEADERBOARD_KEYS
from tiewise.analysis.protocol_result import PROTOCOL_COLUMNS
from tiewise.analysis.report_tables import REPORT_COLUMNS
from tiewise.analysis.settings import SWITCHES
from tiewise.analysis.tool_settings import FLAGS
from tiewise.analysis.tool_values import TOOL_COLUMNS
from tiewise.cli.command import Argument, Option
from tiewise.cli.options import MEASURE_HELP
from tiewise.cli.program import COMMANDS, all_commands, app
from tiewise.metrics import catalogue
from tiewise.metrics.tool_rules import TOOLS, Rule
from tiewise.rankings import pair_measures
from tiewise.rankings.first_stages import STAGE_COLUMNS, STAGE_KEYS
from tiewise.rankings.run_similarity import SIMILARITY_COLUMNS, SIMILARITY_KEYS

ROOT = Path(__file__).parent.parent
MADE = "<!-- This page is made by scripts/make_docs.py: do not edit it by hand. -->"
PART = re.compile(r"(<!-- made: ([\w-]+) -->\n\n?).*?(<!-- end -->)", re.DOTALL)


def documents() -> dict[Path, str]:
    """Every file that is made, wholly or in part, with the text it should have."""
    made = {ROOT / f"docs/{name}.md": page() for name, page in PAGES.items()}
    made[SPEED_PAGE] = whole_page()
    made[ROOT / "docs/llms.txt"] = page_list()
    made |= {ROOT / "docs/img" / name: picture for name, picture in make_figures.figures().items()}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path not in made and PART.search(text := path.read_text(encoding="utf-8")):
            made[path] = PART.sub(
                lambda found: found[1].rstrip("\n") + "\n\n" + PARTS[found[2]]() + "\n" + found[3], text
            )
    return made


def page_list() -> str:
    """The pages of the site with the first sentence of each, for programs that read it (llms.txt)."""
    pages = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    lines = [
        "# Tiewise",
        "",
        "> How far a retrieval score can be trusted: exact nDCG, MRR, MAP, recall and others under ties.",
    ]
    for group, title, name in re.findall(r"^  - (.+):$|^ {6,}- (?:(.+): )?([\w/-]+)\.md$", pages, re.M):
        if group:
            lines += ["", f"## {group}", ""]
            continue
        text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        heading = re.search(r"^# (.+)$", text, re.M)[1]
        lines.append(f"- [{title or heading}]({name}.html){first_sentence(text)}")
    return "\n".join(lines) + "\n"


def first_sentence(page: str) -> str:
    """The first sentence of a page, without its links; empty if it begins with an example."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(page.split("\n\n")[1].split()))
    found = re.match(r"(?!```)[A-Z`].*?[.:?](?= |$)", text)
    return f": {found[0].removesuffix(':')}" if found else ""


# -- columns and JSON -----------------------------------------------------------------------------------------

SCHEMAS_HEAD = """# Columns and JSON

What programs can read. `--format json` prints what `to_dict()` returns in Python; the command adds only the `name` of
a run. Several runs are a list under `runs`. TSV, CSV, JSON Lines, Parquet and `to_frame()` have the columns, in the
order shown; a later version may add some at the end and never renames or moves one. A cell is empty (null) where it
does not apply. The number at the end of a `schema`, such as `tiewise/evaluation/1`, changes if a key goes or means
something else.
"""

#: The keys of `Report.to_dict` and of JSON.
REPORT_KEYS = {
    "provenance": "version, files with their SHA-256, options, and how many queries and rows there were",
    "sentence": "what ties do to the numbers, and what to report",
    "notes": "what a reader should know",
    "measures": "by measure the mean over queries: the statistics of the columns below",
    "queries": "with `-q`: the same by measure and query",
}

#: The keys of `Compared.to_dict`.
COMPARISON_KEYS = {
    "version": "of Tiewise",
    "runs": "name and file of each run",
    "queries": "how many queries are compared",
    "baseline": "the run that the others are compared with, or null",
    "test": "max-t or tukey",
    "confidence": "of the intervals",
    "orders": "independent, per-query or shared",
    "seed": "of random draws",
    "rankings": "for each measure `tau` (Kendall's τ of the systems by expected and by oblivious values) and `rows`",
    "pairs": "every pair, or every run against the baseline (of more than 200 runs, the best): the attributes of "
    "`PairComparison`",
    "unjudged": "with `--explain`: for each run the bounds over labels of unjudged documents",
    "notes": "what a reader should know",
}

#: The columns of a ranking.
RANKING_COLUMNS = {
    "rank": "by expected value; equal values share a rank",
    "system": "the name of the run",
    "expected": "its expected value over the queries compared",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "oblivious": "its value in one fixed order (`--oblivious`)",
    "difference": "its expected value − that of the best, or of the baseline",
    "ci_low": "the interval of the difference, which holds for the whole family at once: its lower end",
    "ci_high": "its upper end",
    "p_value": "of the difference, two-sided, adjusted",
    "rank_best": "its best rank in any order of ties",
    "rank_worst": "its worst",
    "ranks_reached": "whether an order is known that gives these ranks",
    "rank_low": "1 + the number of systems shown to be better",
    "rank_high": "the number of systems − the number shown to be worse",
}

#: The keys of `Protocol.to_dict` and of JSON.
PROTOCOL_KEYS = {
    "queries": "the number of queries that all rows have",
    "reference": "the row that others are compared with",
    "oblivious": "the order of the oblivious values",
    "cutoff": "of the overlap",
    "max_loss": "the largest loss allowed",
    "worst": "what one query can lose",
    "choice": "the row to take",
    "sentence": "what the table says",
    "notes": "what a reader should know",
    "rows": "the columns below",
}

#: What each schema is printed by, its keys in JSON and its columns.
SCHEMAS: dict[str, tuple[str, dict[str, str], dict[str, dict[str, str]]]] = {
    "evaluation": ("`tiewise evaluate`, `Report`", REPORT_KEYS, {"": REPORT_COLUMNS}),
    "tools": (
        "`tiewise evaluate --tools`, `Report.oblivious_by_tool()`",
        {"rows": "the columns below"},
        {"": TOOL_COLUMNS},
    ),
    "comparison": (
        "`tiewise compare`, `Compared`",
        COMPARISON_KEYS,
        {"pairs": COMPARISON_COLUMNS, "`ranking()`": RANKING_COLUMNS},
    ),
    "leaderboard": (
        "`tiewise leaderboard`, `Leaderboard`",
        LEADERBOARD_KEYS,
        {"systems": LEADERBOARD_COLUMNS, "`cells()`": CELL_COLUMNS},
    ),
    "why": ("`tiewise why`, `Why`", WHY_KEYS, {"": WHY_COLUMNS}),
    "audit": ("`tiewise audit`, `Audit`", AUDIT_KEYS, {"": AUDIT_COLUMNS}),
    "similarity": ("`tiewise similarity`, `Similarity`", SIMILARITY_KEYS, {"": SIMILARITY_COLUMNS}),
    "stages": ("`tiewise stages`, `Stages`", STAGE_KEYS, {"": STAGE_COLUMNS}),
    "protocol": ("`tiewise protocol`, `Protocol`", PROTOCOL_KEYS, {"": PROTOCOL_COLUMNS}),
    "index": ("`tiewise.adapters.index.check`", INDEX_KEYS, {}),
}


def schemas_page() -> str:
    """The keys of JSON and the columns of every result; what several have is described once."""
    results = [
        dict.fromkeys(item for some in (keys, *columns.values()) for item in some.items())
        for _, keys, columns in SCHEMAS.values()
    ]
    counts = Counter(item for result in results for item in result)
    most = {item[0]: item for item in sorted(counts, key=lambda item: counts[item])}
    shared = dict(item for item in counts if counts[item] > 1 and most[item[0]] == item)
    parts = [MADE, SCHEMAS_HEAD, "## What several results have\n", describe_names(shared, {})]
    for name, (printed, keys, columns) in SCHEMAS.items():
        parts.append(f"## {name}\n\n{printed}. Keys of JSON:\n")
        parts.append(describe_names(keys, shared))
        for title, some in columns.items():
            parts += [f"Columns{f' of {title}' * bool(title)}:\n", describe_names(some, shared | keys)]
    return "\n".join(parts)


#: What the second of two neighbours says, such as `ci_low` and `ci_high`: they share a row.
SECONDS = ("the highest", "its upper end", "the last", "that of b", "in which b is", "in which both are equal")


def describe_names(names: dict[str, str], known: dict[str, str]) -> str:
    """A list of keys or columns in their order; neighbours that are described elsewhere share a row."""
    items = list[tuple[str, str]]()
    for name, what in names.items():
        text = "" if known.get(name) == what else what
        names_before, before = items[-1] if items else ("", "described elsewhere")
        if what in SECONDS or text == before:
            both = f"{before}; {what}".removesuffix(": its lower end; its upper end")
            items[-1] = (f"{names_before}, `{name}`", both if before else "")
        else:
            items.append((f"`{name}`", text))
    return "".join(f"* {name}{text and f': {text}'}\n" for name, text in items)


# -- measures -------------------------------------------------------------------------------------------------

#: Spellings of other tools, to show what becomes of them.
SPELLINGS = {
    "trec_eval": "ndcg_cut.5,10 ndcg_cut_10 P.10 P_10 recall.100 map map_cut.10 recip_rank success.5 Rprec bpref "
    "set_P set_recall num_ret num_rel num_rel_ret rbp.p=0.8",
    "ndeval": "alpha-nDCG@10 ERR-IA@20 MAP-IA P-IA@5 strec@10",
    "ir_measures": "NDCG@10 nDCG(cutoff=10) MAP MRR@10 P(rel=2)@5 RBP(p=0.8) Judged@10 "
    "AP(judged_only=True)@100 INST(max_rel=3) SDCG(max_rel=3)@10",
    "ranx": "ndcg@10 ndcg_burges@10 mrr@10 map@100 map@100-l2 rbp.95 hit_rate@10 r-precision f1@10 hits@10",
    "MTEB, BEIR": "NDCG@10 ndcg_at_10 mrr_at_10 map_at_100 recall_at_100 precision_at_10 hit_rate_at_10",
}


DIVERSITY, TWO_RANKINGS = "diversity", "two rankings"  #: families with a section of their own
#: Where our own measures are defined: those that plugins bring are not part of the page.
MODULES = (catalogue.__name__, pair_measures.__name__)


def known_measures() -> dict[str, tw.Measure]:
    """Our own measures by name, without those of plugins."""
    return {name: one for name, one in tw.measures().items() if type(one).__module__.startswith(MODULES)}


def families() -> dict[str, list[str]]:
    """The names of measures by family, in the order of the registry."""
    known = known_measures()
    found = {family: [name for name in known if name in names] for family, names in catalogue.FAMILIES.items()}
    return found | {TWO_RANKINGS: [name for name, one in known.items() if one.compares]}


def measure_list() -> str:
    """All measures by family, each with a link."""
    known = known_measures()
    linked = (
        (family, ", ".join(f"[{name}](#{name.lower()}){'@k' * known[name].takes_cutoff}" for name in names))
        for family, names in families().items()
    )
    return table(("family", "measures"), linked)


def one_ranking() -> str:
    """The measures of a run against ordinary judgments, by family."""
    return "\n".join(
        f"## {family[0].upper()}{family[1:]}\n\n{sections(family)}"
        for family in families()
        if family not in (DIVERSITY, TWO_RANKINGS)
    )


def sections(family: str) -> str:
    """The measures of one family."""
    known = known_measures()
    return "\n".join(measure_section(known[name]) for name in families()[family])


def spellings() -> str:
    """What becomes of the names of other tools."""
    return table(
        ("tool", "names, and as what they are read"),
        ((tool, "; ".join(map(read_as, words.split()))) for tool, words in SPELLINGS.items()),
    )


def read_as(word: str) -> str:
    """A name, and the measures that it means if they are spelled otherwise."""
    measures = code(tw.parse_all(word))
    return f"`{word}`" + f" → {measures}" * (measures != f"`{word}`")


def measure_section(one: tw.Measure) -> str:
    """What there is to say about one measure."""
    prose, _, example = (inspect.getdoc(type(one)) or "").partition(">>> ")
    params = ", ".join(f"{name}={spelled(param.default)}" for name, param in one.params.items())
    facts = [f"`{one.stem}{params and f'({params})'}{'@k' * one.takes_cutoff}`"]
    facts += [more for name, param in one.params.items() if name != "rel" and (more := allowed(name, param))]
    if one.aliases:
        facts.append("also " + ", ".join(f"`{alias.replace(':', '` with `')}`" for alias in one.aliases))
    parts = [f"### {one.stem}\n", prose.strip() + "\n"]
    if "[" in example:  # the order of ties changes the value
        parts.append(f"```python\n>>> {example.strip()}\n```\n")
    return "\n".join([*parts, f"{'; '.join(facts)}\n"])


def spelled(value: object) -> str:
    """A default as it is written in a measure's name."""
    if isinstance(value, bool):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def allowed(name: str, param: Any) -> str:
    """Which other choices a parameter has; that of a number is checked when it is given."""
    if isinstance(param.default, bool):
        return f"or `{name}={not param.default}`"
    if others := [f"`{name}={spelled(choice)}`" for choice in param.choices or () if choice != param.default]:
        return f"or {', '.join(others)}"
    return ""


# -- command line ---------------------------------------------------------------------------------------------

CLI_HEAD = """# Command line

Every command, argument and option, as `--help` shows them. `tiewise --install-completion` completes them in your
shell. `QRELS` are relevance judgments, `RUN` is a run; `-` is standard input. `tiewise demo --write example` writes
files to try.

| exit code | meaning |
|---|---|
| 0 | done |
| 2 | bad input or usage: one paragraph on standard error says what was found, where, and what to do |
| 3 | a `--fail-if` condition is true |
"""


#: What `CLI_HEAD` says once of the arguments of most commands.
USUAL = (
    "Relevance judgments; - is standard input.",
    "A run; - is standard input.",
    "One or more runs; - is standard input.",
)

SHARED_HEAD = """## Shared options

What several commands have.
"""


class OptionRow(NamedTuple):
    """An option in the tables of a command."""

    group: str
    name: str  #: the last of its names, such as ``--measure``
    spelled: str  #: all names and the value
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Options with one key are the same."""
        return self.spelled, self.text


def cli_page() -> str:
    """The page of all commands, from the commands themselves."""
    commands: dict[str, Any] = all_commands()
    rows = {name: command_rows(name, command) for name, command in commands.items()}
    shared = shared_rows([some for name, some in rows.items() if not is_protocol(name)])
    in_protocol = shared_rows([some for name, some in rows.items() if is_protocol(name)])
    index = " · ".join(f"[`{name}`](#tiewise-{name})" for name in COMMANDS)
    parts = [MADE, CLI_HEAD, f"{index}\n", command_section("tiewise", app, ())]
    for name, command in commands.items():
        parts.append(command_section(f"tiewise {name}", command, in_protocol if is_protocol(name) else shared))
        if name == "protocol":
            parts += ["Options of several of its commands:\n", bullets([row.key for row in in_protocol])]
    parts.append(SHARED_HEAD)
    for group in dict.fromkeys(row.group for row in shared):
        parts += [f"**{group}**\n", bullets([row.key for row in shared if row.group == group])]
    return "\n".join(parts)


def is_protocol(name: str) -> bool:
    """Whether it is a command of ``tiewise protocol``."""
    return name.startswith("protocol ")


def command_rows(name: str, command: Any) -> list[OptionRow]:
    """The options of a command."""
    context = click.Context(command, info_name=name, **app.context_settings)
    found = [one for one in command.params if isinstance(one, Option)]
    return [OptionRow(one.group, one.opts[-1], option_name(one, context), option_help(one)) for one in found]


def shared_rows(commands: Sequence[Sequence[OptionRow]]) -> list[OptionRow]:
    """The options that several commands have, each with the help that most of them show."""
    rows = [replace_measures(row, MEASURE_HELP) for some in commands for row in some]
    counts = Counter(row.key for row in rows)
    most = {row.name: row for row in sorted(rows, key=lambda row: counts[row.key])}
    return [most[name] for name in dict.fromkeys(row.name for row in rows) if counts[most[name].key] > 1]


def replace_measures(row: OptionRow, words: str) -> OptionRow:
    """The ``--measure`` of a command: for the shared help, words, and its own remark and default."""
    if not row.text.startswith(plain(MEASURE_HELP)):
        return row
    return row._replace(text=words if words == MEASURE_HELP else words + row.text.removeprefix(plain(MEASURE_HELP)))


def command_section(name: str, command: Any, shared: Sequence[OptionRow]) -> str:
    """Usage, help, arguments, options and examples of one command; shared options are only named."""
    context = click.Context(command, info_name=name, **app.context_settings)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"## {name}\n", "```text", usage, "```\n", plain(command.help) + "\n"]
    if arguments := [one for one in command.params if isinstance(one, Argument) and one.description not in USUAL]:
        parts.append(" ".join(f"`{one.metavar}`: {one.description}" for one in arguments) + "\n")
    known, named, own = {row.key for row in shared}, list[OptionRow](), list[tuple[str, str]]()
    for row in command_rows(name, command):
        if row.key in known:
            named.append(row)
            continue
        own.append(replace_measures(row, "[Measures](#shared-options).").key)
    parts += [bullets(own)] if own else []
    if named:
        where = "tiewise-protocol" if is_protocol(name.removeprefix("tiewise ")) else "shared-options"
        parts.append(f"[Shared options](#{where}): {name_options(named, shared)}.\n")
    if examples := getattr(command, "examples", ()):
        parts.append("\n".join(["```sh", *examples, "```\n"]))
    return "\n".join(parts)


def name_options(named: Sequence[OptionRow], shared: Sequence[OptionRow]) -> str:
    """Some of the shared options: those of a group that has a few others, as all of it but these."""
    parts, groups = [], dict.fromkeys(row.group for row in shared)
    for group in groups:
        every = [row.name for row in shared if row.group == group]
        names = [row.name for row in named if row.name in every]
        others = [name for name in every if name not in names]
        but = f" but {code(others)}" * bool(others)
        every_one = f"all of *{group}*" if len(groups) > 1 else "all"
        parts += [every_one + but if len(others) + 1 < len(names) else code(names)] * bool(names)
    return "; ".join(parts)


def bullets(items: Iterable[tuple[str, str]]) -> str:
    """A list of names, each with its text; those with one text share a line, as in help."""
    merged = dict[str, list[str]]()
    for name, text in items:
        merged.setdefault(text, []).append(name)
    return "".join(f"* {'; '.join(names)}: {text}\n" for text, names in merged.items())


def plain(text: str | None) -> str:
    """Help as Markdown: options are code."""
    return re.sub(r"(?<![\w`'-])(--?[a-zA-Z][\w-]*)(?![`\w])", r"`\1`", inspect.cleandoc(text or ""))


def option_name(param: Option, context: click.Context) -> str:
    """The names of an option and its value, as help shows them."""
    value = "" if param.is_flag else f" `{param.make_metavar(context)}`"
    return ", ".join(f"`{name}`" for name in param.opts) + value


def option_help(param: Option) -> str:
    """What an option does, and its default."""
    text = plain(param.help) + (f" Default: {plain(param.default_note)}." if param.default_note else "")
    return " ".join(text.split())


# -- Python ---------------------------------------------------------------------------------------------------

API_HEAD = """# Python reference

The public names of `tiewise`, by task. The site shows signatures and docstrings below each table; elsewhere
`help(tw.evaluate)` does. Measures have a [page of their own](measures.md); the [tutorial](tutorial.md) shows how all
of it is used.
"""

#: Where the public names are defined, in the order of the page.
API = {
    "Evaluate": [
        "tiewise.analysis.evaluating.evaluate",
        "tiewise.scoring.labelled_scores.evaluate_scores",
        "tiewise.analysis.reports.Report",
        "tiewise.analysis.reports.Provenance",
        "tiewise.metrics.estimate.Estimate",
        "tiewise.metrics.estimate.Estimates",
        "tiewise.metrics.noise.Rerun",
        "tiewise.metrics.noise.Noise",
        "tiewise.metrics.estimate.Bounds",
    ],
    "Compare, audit, HTML page": [
        "tiewise.analysis.comparison.comparing.compare",
        "tiewise.analysis.comparison.comparing.Compared",
        "tiewise.analysis.comparison.pair.PairComparison",
        "tiewise.analysis.leaderboards.leaderboard",
        "tiewise.analysis.leaderboard_result.Leaderboard",
        "tiewise.analysis.number_causes.why",
        "tiewise.analysis.causes.Why",
        "tiewise.analysis.causes.Cause",
        "tiewise.analysis.auditing.audit",
        "tiewise.analysis.auditing.Audit",
        "tiewise.analysis.rerun.score_noise",
        "tiewise.analysis.rerun.ScoreNoise",
        "tiewise.analysis.unjudged_bounds.unjudged",
        "tiewise.analysis.unjudged_bounds.Unjudged",
        "tiewise.page.write_page",
    ],
    "Runs and judgments": [
        "tiewise.data.runs.Run",
        "tiewise.data.judgments.Qrels",
        "tiewise.io.read_run",
        "tiewise.io.read_qrels",
        "tiewise.io.write_run",
        "tiewise.io.write_qrels",
    ],
    "Tie groups": [
        "tiewise.ties.TieGroups",
        "tiewise.ties.tie_groups",
        "tiewise.ties.judged_scores",
        "tiewise.ties.break_ties",
        "tiewise.ties.notation",
    ],
    "Measures": [
        "tiewise.metrics.names.measure",
        "tiewise.metrics.names.measures",
        "tiewise.metrics.names.parse",
        "tiewise.metrics.names.parse_all",
        "tiewise.metrics.definition.Measure",
        "tiewise.metrics.definition.ListMeasure",
        "tiewise.metrics.definition.param",
    ],
    "Sets and rankings": [
        "tiewise.rankings.ranking.Ranking",
        "tiewise.rankings.rank_biased.rbp",
        "tiewise.rankings.rank_biased.rbr",
        "tiewise.rankings.overlap.rbo",
        "tiewise.rankings.overlap.rba",
        "tiewise.rankings.overlap.med_rbp",
        "tiewise.rankings.correlation.tau",
        "tiewise.rankings.correlation.tau_ap",
        "tiewise.rankings.run_similarity.similarity",
        "tiewise.rankings.run_similarity.Similarity",
        "tiewise.rankings.first_stages.stages",
        "tiewise.rankings.first_stages.Stages",
        "tiewise.rankings.rank_biased.precision",
        "tiewise.rankings.rank_biased.recall",
        "tiewise.rankings.rank_biased.precision_at",
        "tiewise.rankings.rank_biased.recall_at",
        "tiewise.rankings.weights.Weights",
        "tiewise.rankings.weights.phi_for_discount",
        "tiewise.rankings.weights.phi_for_reverse_rba",
        "tiewise.rankings.weights.phi_for_weight",
        "tiewise.rankings.weights.top_weight",
    ],
    "Protocol": [
        "tiewise.analysis.protocols.protocol",
        "tiewise.analysis.protocol_result.Protocol",
        "tiewise.analysis.protocols.Row",
        "tiewise.scoring.row_makers.vectors.vectors",
        "tiewise.scoring.row_makers.logits.logits",
        "tiewise.adapters.protocol_models.model",
    ],
    "Scoring": [
        "tiewise.scoring",
    ],
    "Figures": [
        "tiewise.figures",
    ],
    "Errors and warnings": [
        "tiewise.errors.TiewiseError",
        "tiewise.errors.InputError",
        "tiewise.errors.MeasureError",
        "tiewise.errors.MissingExtraError",
        "tiewise.errors.TiewiseWarning",
        "tiewise.errors.CutWarning",
    ],
}


def api_page() -> str:
    """The page of the public names. `site_hooks.py` turns the comments into signatures and docstrings."""
    parts = [MADE, API_HEAD]
    for title, paths in API.items():
        rows = [
            (f"`{path if inspect.ismodule(found) else found.__name__}`", summary(found))
            for path, found in map(load, paths)
        ]
        parts += [
            f"## {title}\n",
            table(("name", ""), rows),
            f"<!-- ::: {' '.join(paths)} -->\n",
        ]
    return "\n".join(parts)


def load(path: str) -> tuple[str, Any]:
    """A path, and what it names."""
    module, _, name = path.rpartition(".")
    parent = importlib.import_module(module)
    return path, getattr(parent, name) if hasattr(parent, name) else importlib.import_module(path)


def summary(found: Any) -> str:
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
    return cell(re.match(r"(?:``.*?``|.)*?(?<!Eq)(?<!al)[.:](?= |$)|.*", text)[0].rstrip(":"))


# -- parts of pages -------------------------------------------------------------------------------------------

#: The tools of the README's table; the others behave as one of these, or cannot be reproduced.
SHOWN_TOOLS = ("trec_eval", "pytrec_eval", "ir_measures", "beir", "mteb", "sentence-transformers")
#: The measures by which the tools' rules are shown.
SHOWN_MEASURES = "nDCG@10 AP AP@100 RR RR@10 P@10 R@100 Success@10 Judged@10 ERR@20 alpha_nDCG@20"
ORDERS = {"docid-desc": "id ↓", "docid-asc": "id ↑", "given": "input", None: "?"}


def constant_scorer() -> str:
    """What the tools print for a run in which all of 20 documents have the same score and one is relevant."""
    docs = [f"d{place:02d}" for place in range(20)]
    run = {"q": dict.fromkeys(docs, 1.0)}
    reports = [tw.evaluate({"q": {doc: 1}}, run, ["RR@10", "nDCG@10"], complete=True) for doc in (docs[0], docs[-1])]
    printed = [{(row.tool, row.measure): row.value for row in report.oblivious_by_tool()} for report in reports]
    columns = [(values, name) for values in printed for name in ("RR@10", "nDCG@10")]
    rows = [
        (tool, *(decimal(values[tool, m]) if (tool, m) in values else "–" for values, m in columns))
        for tool in SHOWN_TOOLS
    ]
    means = [reports[0][name] for name in ("RR@10", "nDCG@10")] * 2
    ours = [f"**{decimal(e.expected)}** ({decimal(e.minimum)} – {decimal(e.maximum)})" for e in means]
    heads = ("", "smallest id: RR@10", "smallest id: nDCG@10", "largest id: RR@10", "largest id: nDCG@10")
    return table(heads, [*rows, ("**tiewise** (by tie order)", *ours)])


def tool_rules() -> str:
    """The order and the score type of each tool, measure by measure."""
    shown = tw.parse_all(SHOWN_MEASURES)
    rows = [(f"`{tool.name}`", tool.version, *(rule_cell(tool.rule(one)) for one in shown)) for tool in TOOLS.values()]
    return table(("tool", "version", *(f"`{one}`" for one in shown)), rows)


def rule_cell(rule: Rule | None) -> str:
    if rule is None:
        return ""
    return ORDERS[rule.order] + (" f32" if rule.dtype == "float32" else "")


def causes() -> str:
    """The causes of a difference in their order, with the options that turn them and what to do about them."""
    options: dict[str, list[str]] = {"gains": ["`--gains`"], "norm": ["`--norm`"]}  # parameters of measures
    for option, (switch, _) in FLAGS.items():
        options.setdefault(switch, []).append(f"`{option}`")
    rows = [(name, " ".join(options.get(switch, [])), cell(ADVICE[name])) for switch, name in SWITCHES.items()]
    return table(("cause", "option of a tool", "what it is, and what to do"), rows)


def tool_definitions() -> str:
    """What each tool does with missing queries, and where it computes something else under the same name."""
    shown = tw.parse_all(SHOWN_MEASURES)
    rows = []
    for tool in TOOLS.values():
        rules = {one: rule for one in shown if (rule := tool.rule(one)) is not None}
        own = [f"`{one}` is `{rule.measure}`" for one, rule in rules.items() if rule.measure not in (None, one)]
        if any(rule.retrieved_only for rule in rules.values()):
            own.append("relevant documents that were not retrieved are unknown to it")
        if any(rule.skips_no_relevant for rule in rules.values()):
            own.append("queries without a relevant document are left out")
        if tool.drops_self or tool.in_some_tasks:
            some = ", in some tasks" * tool.in_some_tasks
            own.append(f"documents with the id of their query are removed{some}")
        reasons = dict.fromkeys(rule.why for rule in rules.values() if rule.why)
        for why in (reason for reason in reasons if reason not in own):
            meant = [one for one, rule in rules.items() if rule.why == why]
            own.append(why if len(meant) == len(rules) else f"{why} ({code(meant)})")
        rows.append((f"`{tool.name}`", missing_words(rules), "; ".join(own)))
    return table(("tool", "judged queries that the run lacks", "differs by definition, or cannot be reproduced"), rows)


def missing_words(rules: dict[tw.Measure, Rule]) -> str:
    words = {"zero": "count as 0", "skip": "are left out", "error": "are an error without `-c`"}
    known = {one: rule.missing for one, rule in rules.items() if rule.order is not None}
    kinds = dict.fromkeys(known.values())
    if len(kinds) < 2:
        return words[next(iter(kinds))] if kinds else ""
    return "; ".join(f"{words[kind]} ({code(one for one in known if known[one] == kind)})" for kind in kinds)


def decimal(value: float | None) -> str:
    """A number as the tables print it: three digits, no nought before the point."""
    if value is None:
        return "?"
    return f"{value:.3f}".removeprefix("0").rstrip("0").rstrip(".") or "0"


PAGES = {"api": api_page, "cli": cli_page, "json": schemas_page}

PARTS: dict[str, Callable[[], str]] = {
    "constant-scorer": constant_scorer,
    "measure-list": measure_list,
    "measures": one_ranking,
    "diversity-measures": lambda: sections(DIVERSITY),
    "ranking-measures": lambda: sections(TWO_RANKINGS),
    "spellings": spellings,
    "tool-rules": tool_rules,
    "causes": causes,
    "tool-definitions": tool_definitions,
    "shards-arithmetic": lambda: ray_page.arithmetic(ROOT / "benchmarks/results"),
}


def code(items: Iterable[object]) -> str:
    """Some names, each as code."""
    return ", ".join(f"`{item}`" for item in items)


def cell(text: str | None) -> str:
    """A text in one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    first, *lines = (f"| {' | '.join(line)} |\n" for line in (heads, *rows))
    return "".join([first, f"|{'---|' * len(heads)}\n", *lines])


def main() -> None:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description="Write what the documentation takes from the code.")
    parser.add_argument("--check", action="store_true", help="fail if a file is not up to date; write nothing")
    check = parser.parse_args().check
    stale = [p for p, text in documents().items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(documents()[path], encoding="utf-8")
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    sys.exit(bool(stale) and check)


if __name__ == "__main__":
    main()
