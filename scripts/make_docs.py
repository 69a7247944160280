"""Write what the documentation takes from the code: whole pages, parts of pages, and pictures.

    python scripts/make_docs.py            write what has changed
    python scripts/make_docs.py --check    say what has changed and fail; nothing is written

`docs/measures.md` comes from the registry, `docs/cli.md` from the commands, `docs/json.md` from the columns of results,
and `docs/speed.md` from the results of the benchmarks. In pages written by hand, what stands between
``<!-- made: NAME -->`` and ``<!-- end -->`` is replaced. The tests fail if a page differs from what this gives.
"""

from __future__ import annotations

import argparse
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

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
from tiewise.cli.command import FEW_OPTIONS, SHORT, Argument, Option
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
    for group, title, name in re.findall(r"^  - (.+):$|^      - (?:(.+): )?([\w/-]+)\.md$", pages, re.M):
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

`--format json` prints what `to_dict()` returns in Python; the command adds only the `name` of a run. Several runs are a
list under `runs`. TSV, CSV, JSON Lines, Parquet and `to_frame()` have the columns; a later version may add some at the
end and never renames or moves one. A cell is empty (null) where it does not apply. The number at the end of a `schema`
changes if a key goes or means something else.
"""

#: The keys of `Report.to_dict` and of JSON.
REPORT_KEYS = {
    "provenance": "version, files with their SHA-256, options, and how many queries and rows were there or tied",
    "sentence": "what ties do to the numbers, and what to report",
    "notes": "what a reader should know",
    "measures": "by measure the mean over queries: expected, ci, minimum, maximum, std, oblivious, range, bias, z, "
    "residual, cut, and how each was found",
    "queries": "with `-q`: the same by measure and query",
}

#: The keys of `Compared.to_dict`.
COMPARISON_KEYS = {
    "schema": "tiewise/comparison/1",
    "version": "of Tiewise",
    "runs": "name and file of each run",
    "queries": "how many queries are compared",
    "baseline": "the run that the others are compared with, or null",
    "test": "max-t or tukey",
    "confidence": "of the intervals; a difference is shown if its p-value is below 1 − confidence",
    "orders": "whose ties one order breaks: independent, per-query or shared",
    "seed": "of random draws",
    "rankings": "for each measure `tau` (Kendall's τ between the systems by expected and by oblivious values) and "
    "`rows`, the columns of a ranking",
    "pairs": "every pair, or every run against the baseline (of more than 200 runs, against the best): the attributes "
    "of `PairComparison`",
    "unjudged": "with `--explain`: for each run the bounds over labels of unjudged documents",
    "notes": "what a reader should know",
}

#: The columns of a ranking.
RANKING_COLUMNS = {
    "rank": "the rank by expected value; equal values share a rank",
    "system": "the name of the run",
    "expected": "its expected value over the queries compared",
    "minimum": "its lowest value over the orders of ties",
    "maximum": "its highest",
    "oblivious": "its value as the tool prints it that `--oblivious` names",
    "difference": "its expected value minus that of the best, or of the baseline; empty for these",
    "ci_low": "the interval of the difference: all intervals of the comparison hold together; its lower end",
    "ci_high": "its upper end",
    "p_value": "of the difference, two-sided, adjusted for all differences of the comparison",
    "rank_best": "its best rank in any order of ties",
    "rank_worst": "its worst",
    "ranks_reached": "whether an order of ties is known that gives these ranks",
    "rank_low": "1 + the number of systems that are shown to be better",
    "rank_high": "the number of systems − the number of those that are shown to be worse",
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
    "rows": "the columns above",
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
    """The keys of JSON and the columns of every result."""
    parts = [MADE, SCHEMAS_HEAD]
    for name, (printed, keys, columns) in SCHEMAS.items():
        parts.append(f"## {name}\n\n{printed}. The schema is `tiewise/{name}/1`.\n")
        parts.append(table(("key of JSON", "holds"), [(f"`{key}`", cell(what)) for key, what in keys.items()]))
        for title, some in columns.items():
            parts += [f"Columns of {title}:\n"] * bool(title)
            parts.append(table(("column", "holds"), [(f"`{key}`", cell(what)) for key, what in some.items()]))
    return "\n".join(parts)


# -- measures -------------------------------------------------------------------------------------------------

MEASURES_HEAD = """# Measures

A measure is a value. `P(rel=2)@10` is Python code, a name on the command line, a key of the report and the title of a
column. Parameters are in brackets; `@` sets the cutoff. The result is an
[estimate](tutorial.md#what-an-estimate-holds) over all orders of the tied documents. The examples use
[ranking notation](tutorial.md#ranking-notation): digits are labels, `-` is an unjudged document, brackets enclose tied
documents, and documents after `|` were judged but not retrieved. For [diversity](diversity.md), letters are subtopics.

```python
>>> from tiewise import *
>>> P(rel=2) @ 10 == parse("P(rel=2)@10")
True
```

Definitions that all of them share:

* A judged document is relevant if its label is at least `rel`. The default is 1; with 0 all labels from 0 on are
  relevant, as with `trec_eval -l 0`. Labels may be fractions. N₊ is the number of relevant documents among all judged
  ones, retrieved or not.
* Unjudged documents and those with a negative label have gain 0 and are never relevant. Bpref ignores both;
  `judged_only` (`-J`) removes both from the lists, as trec_eval does; Judged counts negative labels as judged.
* `judged_only=True` is a parameter of every measure: `nDCG(judged_only=True)@10` removes them for this measure alone.
* Without a cutoff the whole list counts. A cutoff beyond the list's end is allowed: P@k still divides by k.
* If a divisor is 0, as without a relevant document, the value is 0; `no_relevant="skip"` leaves such queries out.

[Theory](theory.md) derives expectation, extremes and standard deviation from these definitions.
"""

SPELLINGS_HEAD = """## Spellings

You can use the names of other tools, in upper or lower case. `hits` is a count; `hit_rate` and `Success` are 0 or 1.
`nDCG@5,10` means `nDCG@5` and `nDCG@10`; where only one measure is allowed, it is an error. [Tools](tools.md) lists
names that mean something else in a tool.
"""

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


#: Where our own measures are defined: those that plugins bring are no part of the page.
MODULES = (catalogue.__name__, pair_measures.__name__)


def measures_page() -> str:
    """The page of all measures, from their own documentation."""
    known = {name: one for name, one in tw.measures().items() if type(one).__module__.startswith(MODULES)}
    index = [(f"[{name}](#{name.lower()}){'@k' * one.takes_cutoff}", one.summary) for name, one in known.items()]
    spelled = [
        (tool, f"`{word}`", code(tw.parse_all(word))) for tool, words in SPELLINGS.items() for word in words.split()
    ]
    return "\n".join(
        [
            MADE,
            MEASURES_HEAD,
            table(("measure", "what it is"), index),
            *(measure_section(one) for one in known.values()),
            SPELLINGS_HEAD,
            table(("tool", "written", "read as"), spelled),
        ]
    )


def measure_section(one: tw.Measure) -> str:
    """What there is to say about one measure."""
    prose, _, example = (inspect.getdoc(type(one)) or "").partition(">>> ")
    parts = [f"## {one.stem}\n", prose.strip() + "\n", f"```python\n>>> {example.strip()}\n```\n"]
    if one.params:
        rows = [(f"`{name}`", f"`{spelled(one.default)}`", allowed(one)) for name, one in one.params.items()]
        parts.append(table(("parameter", "default", "may be"), rows))
    facts = ["With or without a cutoff." if one.takes_cutoff else "Takes no cutoff."]
    if one.compares:
        facts.append("Between two rankings: for `similarity`, not for `evaluate` ([more](rankings.md)).")
    if one.needs_subtopics:
        facts.append("Needs judgments for subtopics ([more](diversity.md)).")
    if one.total:
        facts.append("Added up over queries, not averaged.")
    if one.aliases:
        facts.append("Also " + ", ".join(f"`{alias.replace(':', '` with `')}`" for alias in one.aliases) + ".")
    return "\n".join([*parts, " ".join(facts) + "\n"])


def spelled(value: object) -> str:
    """A default as it is written in a measure's name."""
    if isinstance(value, bool):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def allowed(param: Any) -> str:
    """What a parameter may be, in words."""
    if isinstance(param.default, bool):
        return "`True` or `False`"
    if param.choices:
        return ", ".join(f'`"{choice}"`' for choice in param.choices)
    bounds = [f"above {param.above:g}"] * (not math.isinf(param.above))
    bounds += [f"below {param.below:g}"] * (not math.isinf(param.below))
    to = "on" if math.isinf(param.most) else f"to {param.most:g}"
    bounds += [f"from {param.least:g} {to}"] * (not math.isinf(param.least))
    return " ".join(["a number", " and ".join(bounds)]).strip()


# -- command line ---------------------------------------------------------------------------------------------

CLI_HEAD = """# Command line

Every command, argument and option; `-h` or `--help` shows them too. The [tutorial](tutorial.md) uses them,
[formats](formats.md) lists what is read and written. `tiewise --install-completion` installs completion of commands,
options and measures for your shell. In the examples, `qrels.txt`, `run.trec` and the like stand for your files;
`tiewise demo --write example` writes some to try.

| exit code | meaning |
|---|---|
| 0 | done |
| 2 | bad input or usage: one paragraph on standard error says what was found, where, and what to do |
| 3 | a `--fail-if` condition is true |
"""


def cli_page() -> str:
    """The page of all commands, from the commands themselves."""
    commands: dict[str, Any] = all_commands()
    index = [(f"[`{name}`](#tiewise-{name})", summary) for name, summary in COMMANDS.items()]
    parts = [MADE, CLI_HEAD, command_section("tiewise", app), table(("command", ""), index)]
    parts += [command_section(f"tiewise {name}", command) for name, command in commands.items()]
    return "\n".join(parts)


def command_section(name: str, command: Any) -> str:
    """Usage, help, arguments, options and examples of one command."""
    context = click.Context(command, info_name=name, **app.context_settings)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"## {name}\n", "```text", usage, "```\n", plain(command.help) + "\n"]
    arguments = [(f"`{one.metavar}`", cell(one.description)) for one in command.params if isinstance(one, Argument)]
    if arguments:
        parts.append(table(("argument", ""), arguments))
    options = [one for one in command.params if isinstance(one, Option)]
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in options:
        rows = groups.setdefault("" if len(options) <= FEW_OPTIONS or one.group == SHORT else one.group, [])
        name, text = option_name(one, context), option_help(one)
        if rows and rows[-1][1] == text:  # help shows them on one line too
            name = f"{rows.pop()[0]}; {name}"
        rows.append((name, text))
    for group, rows in groups.items():
        parts += [f"**{group}**\n"] * bool(group)
        parts.append(table(("option", ""), rows))
    if examples := getattr(command, "examples", ()):
        parts.append("\n".join(["Examples:\n", "```sh", *examples, "```\n"]))
    return "\n".join(parts)


def plain(text: str | None) -> str:
    """Help as Markdown: options are code."""
    return re.sub(r"(?<![\w`'-])(--?[a-z][\w-]*)(?![`\w])", r"`\1`", inspect.cleandoc(text or ""))


def option_name(param: Option, context: click.Context) -> str:
    """The names of an option and its value, as help shows them."""
    value = "" if param.is_flag else f" `{param.make_metavar(context)}`"
    return cell(", ".join(f"`{name}`" for name in param.opts) + value)


def option_help(param: Option) -> str:
    """What an option does, and its default."""
    return cell(plain(param.help) + (f" Default: {plain(param.default_note)}." if param.default_note else ""))


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
        for why in reasons:
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


PAGES = {"measures": measures_page, "cli": cli_page, "json": schemas_page}

PARTS: dict[str, Callable[[], str]] = {
    "constant-scorer": constant_scorer,
    "tool-rules": tool_rules,
    "causes": causes,
    "tool-definitions": tool_definitions,
    "shards-figures": lambda: ray_page.figures(ROOT / "benchmarks/results"),
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
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


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
