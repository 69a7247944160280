"""The page as text: what was found, put into the template, with style, script and the programs that draw the charts.

The file asks nobody for anything: a policy in its head lets the browser run the page's own two scripts, known by their
hashes, and fetch nothing. Names and ids from files are escaped by the template, and in the data that the script reads
no character is left that could end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.auditing import LIBRARIES
from tiewise.analysis.comparison import Orders
from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.analysis.significance import Test
from tiewise.data.progress import Progress
from tiewise.errors import InputError
from tiewise.io.compression import COMPRESSED, PathLike, save
from tiewise.metrics.definition import Measure
from tiewise.output.page import words
from tiewise.output.page.findings import Findings, find
from tiewise.output.page.orders import RANDOM, STOPS
from tiewise.output.places import check_place
from tiewise.output.wording import safe
from tiewise.tables.html import share
from tiewise.tables.optional import need

__all__ = ["render", "write_report"]

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_report(
    qrels: Any,
    runs: Mapping[Any, Any],
    path: PathLike,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    reference: str | None = None,
    title: str = "",
    orders: Orders = "independent",
    test: Test = "permutation",
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
    command: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Write a page on some runs, ``{name: run}``: one HTML file that needs no network, to be sent to anyone.

    The first measure is what the page is about; the others stand beside it. `reference` names the run that the others
    should rank like; runs of one system in several precisions are also told by their names (``minilm-bf16``,
    ``minilm-fp32``). `orders`, `test`, `confidence`, `samples` and `seed` are those of `compare`, `options` those of
    `evaluate`; `command` is shown as what made the page; `progress(done, total)` is called as runs are measured.

    >>> import tempfile
    >>> qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(qrels, {"run": run}, f"{folder}/report.html", "RR", complete=True)
    ...     "RR of run is 0.7500" in Path(folder, "report.html").read_text(encoding="utf-8")
    True
    """
    check_path(path)
    how = {"orders": orders, "test": test, "confidence": confidence, "samples": samples, "seed": seed, **options}
    found = find(qrels, runs, measures, reference=reference, progress=progress, **how)
    save(path, [render(found, title=title, command=command).encode()])


def check_path(path: PathLike) -> None:
    """Refuse a path that is not that of a page, or cannot be written to, before anything is measured."""
    name = os.fspath(path)
    plain = Path(name).with_suffix("") if Path(name).suffix in COMPRESSED else Path(name)
    if name != "-" and plain.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{name}: a report is a page. End the name in .html.")
    check_place(path)
    _environment()  # says what to install, should it be missing
    need("vl_convert", "A report", "report")


def render(found: Findings, *, title: str = "", command: str | None = None) -> str:
    """The page as text."""
    style, script, programs = _file("page.css"), _file("page.js"), _programs()
    hashes = " ".join(f"'sha256-{_digest(one)}'" for one in (programs, script))
    text: str = (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title or _title(found),
            found=found,
            verdict=found.verdict,
            policy=f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:",
            style=_markup(style),
            script=_markup(script),
            programs=_markup(programs),
            data=_markup(_json(_data(found))),
            facts=_facts(found),
            precisions=_precisions(found),
            provenance=_provenance(found),
            command=command or _call(found),
            version=__version__,
            random=RANDOM,
            stops=STOPS,
        )
    )
    return text


def _title(found: Findings) -> str:
    names = list(found.runs)
    who = names[0] if len(names) == 1 else " and ".join(names) if len(names) == 2 else f"{len(names)} runs"
    return f"{found.measure} of {who}"


# -- what the script reads --------------------------------------------------------------------------------------------


def _data(found: Findings) -> dict[str, Any]:
    labels = sorted(set(found.qrels.label.tolist()))
    worth = found.measure.gain(found.qrels.label)
    relevant = sorted(set(found.qrels.label[worth > 0].tolist()))
    return {
        "measures": [measure.name for measure in found.measures],
        "runs": list(found.runs),
        "grades": [[label, relevant.index(label) + 1 if label in relevant else 0] for label in labels],
        "forest": found.forest(),
        "curves": found.curves(),
        "played": found.played(),
        "perQuery": found.per_query(),
    }


def _json(data: Any) -> str:
    """Data in a script element: no text in it can end that element, or be taken for a line's end."""
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():  # in JSON these stand in texts only
        text = text.replace(character, escape)
    return text


def _plain(part: Any) -> Any:
    """Data with numbers as short as a page needs them, and with texts that are safe to show."""
    if isinstance(part, Mapping):
        return {safe(str(name)): _plain(one) for name, one in part.items()}
    if isinstance(part, (list, tuple)):
        return [_plain(one) for one in part]
    if isinstance(part, float):
        return int(part) if part.is_integer() and abs(part) < 1e15 else float(f"{part:.6g}")
    return safe(part) if isinstance(part, str) else part


# -- what the template reads ------------------------------------------------------------------------------------------


def _facts(found: Findings) -> list[dict[str, Any]]:
    """Tie health, run by run."""
    facts = []
    for name, audit in found.audits.items():
        todo, mean = audit.advice, found.reports[name][found.measure]
        facts.append(
            {
                "run": name,
                "level": audit.level,
                "verdict": audit.verdict,
                "tied": audit.tied_words,
                "grid": audit.grid_evidence,
                "mean": mean,
                "largest": audit.largest_group,
                "share": share(audit.tied_share),
                "cut": audit.cut_lists,
                "remedy": None if todo is None else todo.text,
                "code": [] if todo is None else [(LIBRARIES[library], line) for library, line in todo.code.items()],
            }
        )
    return facts


def _precisions(found: Findings) -> list[dict[str, Any]]:
    """Each system that is there in several precisions: its runs, with what is known of their faith to the finest."""
    return [
        {
            "name": family.name,
            "reference": family.reference,
            "members": [
                {
                    "run": name,
                    "grid": found.audits[name].grid,
                    "share": share(found.audits[name].tied_share),
                    "mean": found.reports[name][found.measure],
                    "fidelity": found.audits[name].fidelity,
                    "gap": _gap(found, name, family.reference),
                    "words": words.of_precision(name, found.audits[name], family.reference),
                }
                for name in family.members
            ],
        }
        for family in found.families
    ]


def _gap(found: Findings, name: str, reference: str) -> float | None:
    own, other = (found.reports[one][found.measure].expected for one in (name, reference))
    return None if own is None or other is None else own - other


def _provenance(found: Findings) -> list[dict[str, Any]]:
    """The files, with their checksums and sizes."""
    sources = [("judgments", found.given.source, len(found.given), len(found.given.queries))]
    sources += [(name, run.source, len(run), len(run.queries)) for name, run in found.runs.items()]
    return [
        {"what": what, "path": source and source.path, "sha256": source and source.sha256, "rows": rows, "lists": lists}
        for what, source, rows, lists in sources
    ]


def _call(found: Findings) -> str:
    """What made the page, if nobody says: Python."""
    measures = [measure.name for measure in found.measures]
    return f"tiewise.write_report(qrels, runs, path, {measures!r}, …)"


def shell(arguments: Iterable[str]) -> str:
    """A command line as one would type it."""
    return shlex.join(["tiewise", *arguments])


# -- files ------------------------------------------------------------------------------------------------------------


def _file(name: str) -> str:
    return files("tiewise.output.page").joinpath("template", name).read_text(encoding="utf-8")


@cache
def _programs() -> str:
    """Vega, Vega-Lite and vega-embed in one script."""
    bundle: str = need("vl_convert", "A report", "report").javascript_bundle()
    assert "</script" not in bundle.lower() and "<!--" not in bundle
    return bundle


@cache
def _environment() -> Any:
    jinja2 = need("jinja2", "A report", "report")
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {"number": _number, "signed": _signed, "share": share}
    return made


def _shown(value: Any) -> Any:
    """Text that is no HTML yet, with characters that a browser would obey shown as escapes."""
    return safe(value) if type(value) is str else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    """A difference with its sign; one that is shown as nothing has none.

    >>> _signed(0.25), _signed(-0.0), _signed(-0.00001)
    ('+0.2500', '0.0000', '0.0000')
    """
    shown = "–" if value is None else f"{value:+.4f}"
    return shown if value is None or float(shown) else "0.0000"


def _markup(text: str) -> Any:
    return need("jinja2", "A report", "report").utils.markupsafe.Markup(text)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
