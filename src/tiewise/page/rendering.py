"""The page as text: the content, put into the template, with style, script and the programs that draw the charts.

The file loads nothing: a policy in its head lets the browser run only the page's own two scripts, known by their
hashes, and fetch nothing. The template escapes names and ids from files, and the data that the script reads contains no
character that could end it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.auditing import GRADES, LIBRARIES
from tiewise.analysis.comparison import Orders
from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.analysis.options import OptionNames, Unpack, takes_options
from tiewise.analysis.simultaneous import Test
from tiewise.data.progress import Progress
from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.figures.theme import load_renderer
from tiewise.io.compression import COMPRESSED, PathLike, check_writable, save
from tiewise.metrics.definition import Measure
from tiewise.page.content import PageContent, collect_content
from tiewise.page.protocol_section import ProtocolLike
from tiewise.page.tie_orders import RANDOM_ORDERS, STOPS
from tiewise.page.verdicts import describe_precision
from tiewise.results.estimates import format_statistic, format_ties, is_wide
from tiewise.results.optional import need
from tiewise.results.wording import PLAIN, add_zeros, escape_controls, format_percent, format_ranks

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@takes_options()
def write_page(
    qrels: Any,
    runs: Mapping[Any, Any],
    path: PathLike,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    reference: str | None = None,
    protocol: ProtocolLike | None = None,
    title: str = "",
    orders: Orders = "independent",
    test: Test = "max-t",
    confidence: float = 0.95,
    command: str | None = None,
    full_paths: bool = False,
    progress: Progress | None = None,
    **options: Unpack[OptionNames],
) -> None:
    """Write a page on some runs, ``{name: run}``: one HTML file that needs no network and can be sent to anyone.

    The page is about the first measure; the others stand beside it. `reference` names the run that the others should
    rank like; runs of one system in several precisions are also recognised by their names (``minilm-bf16``,
    ``minilm-fp32``). `protocol` adds a section on a result of `protocol`: the result, what its `to_dict` gave, or a
    JSON file that ``tiewise protocol`` wrote.

    `orders`, `test` and `confidence` are those of `compare`. The page shows `command` as its origin, and the names of
    files, with `full_paths` their paths; `progress(done, total)` is called after each run.

    {options}

    >>> import tempfile
    >>> qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(qrels, {"run": run}, f"{folder}/report.html", "RR", complete=True)
    ...     "RR of run is 0.7500" in Path(folder, "report.html").read_text(encoding="utf-8")
    True
    """
    check_path(path)
    how: dict[str, Any] = {"orders": orders, "test": test, "confidence": confidence, **options}
    content = collect_content(qrels, runs, measures, reference=reference, protocol=protocol, progress=progress, **how)
    save_page(content, path, title=title, command=command, full_paths=full_paths)


def check_path(path: PathLike) -> None:
    """Raise an error if a path does not end in .html or cannot be written, before anything is measured."""
    name = os.fspath(path)
    plain = Path(name).with_suffix("") if Path(name).suffix in COMPRESSED else Path(name)
    if name != "-" and plain.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{name}: a report is a page. End the name in .html.")
    check_writable(path)
    _environment()  # an error says what to install if it is missing
    load_renderer("A report")


def save_page(content: PageContent, path: PathLike, *, title: str, command: str | None, full_paths: bool) -> None:
    """Write the page of some content: see `write_page`."""
    names = [measure.name for measure in content.measures]
    style, script, programs = _file("page.css"), _file("page.js"), _programs()
    hashes = " ".join(f"'sha256-{_digest(one)}'" for one in (programs, script))
    text: str = (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title or _title(content),
            content=content,
            policy=f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'",
            style=_markup(style),
            script=_markup(script),
            programs=_markup(programs),
            licences=_markup(html.escape(_file("licences.txt"))),
            data=_markup(_json(_data(content))),
            files=_list_files(content),
            path_of=lambda source: source.path if full_paths else PurePath(source.path).name,
            libraries=LIBRARIES,
            grades=GRADES,
            describe_precision=describe_precision,
            command=command or f"tiewise.write_page(qrels, runs, path, {names!r}, …)",
            version=__version__,
            random=RANDOM_ORDERS,
            stops=STOPS,
        )
    )
    save(path, [text.encode()])


def _list_files(content: PageContent) -> list[tuple[str, Source | None, int, int]]:
    """The judgments and each run: name, file, queries and rows."""
    qrels = content.all_qrels
    runs = ((name, audit.source, audit.queries, audit.rows) for name, audit in content.audits.items())
    return [("judgments", qrels.source, len(qrels.queries), len(qrels)), *runs]


def _title(content: PageContent) -> str:
    names = list(content.reports)
    who = " and ".join(names) if len(names) <= 2 else f"{len(names)} runs"
    return f"{content.measure} of {who}"


# -- what the script reads --------------------------------------------------------------------------------------------


def _data(content: PageContent) -> dict[str, Any]:
    labels = sorted(set(content.qrels.label.tolist()))
    gains = content.measure.gain(content.qrels.label)
    relevant = sorted(set(content.qrels.label[gains > 0].tolist()))
    return {
        "measures": [measure.name for measure in content.measures],
        "runs": list(content.reports),
        "grades": [[label, relevant.index(label) + 1 if label in relevant else 0] for label in labels],
        "forest": content.forest(),
        "curves": content.curves(),
        "replays": content.replays(),
        "perQuery": content.per_query(),
        "losses": content.losses(),
    }


def _json(data: Any) -> str:
    """Data for a script element: no text in it can end the element or a line."""
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():  # JSON has these only inside of texts
        text = text.replace(character, escape)
    return text


def _plain(part: Any) -> Any:
    """Data with numbers of six digits, None for NaN, and texts without control characters."""
    if isinstance(part, Mapping):
        return {escape_controls(str(name)): _plain(one) for name, one in part.items()}
    if isinstance(part, (list, tuple)):
        return [_plain(one) for one in part]
    if isinstance(part, float):
        if math.isnan(part):  # a value that is not defined
            return None
        return int(part) if part.is_integer() and abs(part) < 1e15 else float(f"{part:.6g}")
    return escape_controls(part) if isinstance(part, str) else part


# -- files ------------------------------------------------------------------------------------------------------------


def _file(name: str) -> str:
    return (files("tiewise.page") / "template" / name).read_text(encoding="utf-8")


#: The SHA-256 of the script that each version of vl-convert-python makes.
BUNDLES = {
    "1.6.0": "OPCiRAkEhK4t2m/cxC3FC0w1/gTx4FJb1gBKctuiFZI=",
    "1.6.1": "OPCiRAkEhK4t2m/cxC3FC0w1/gTx4FJb1gBKctuiFZI=",
    "1.7.0": "ktSk8AtKqUJRIwTvtCsOwX2TSGoqWpmbcKjVMsL3uWQ=",
    "1.8.0": "sRriEWtOnR9bJzf+u8G6keqLo2wRD10Uzvq69AHv+k0=",
    "1.9.0": "NCW9lRpE1HjQUFxrXR6NV2VrbppNp7/oinGM5h125XI=",
}


@cache
def _programs() -> str:
    """Vega, Vega-Lite and vega-embed in one script. Making it takes seconds, so it is kept in the user's cache folder.

    The page runs this script: what is in the folder is used only if its hash is in `BUNDLES`.
    """
    library = load_renderer("A report")
    path, expected = _cache_folder() / f"vega-{library.__version__}.js", BUNDLES.get(library.__version__)
    try:
        bundle = path.read_text(encoding="utf-8") if expected else ""
    except (OSError, UnicodeDecodeError):
        bundle = ""
    if _digest(bundle) != expected:
        bundle = library.javascript_bundle()
        if _digest(bundle) == expected:
            with suppress(OSError, InputError):  # without the file it only takes longer
                path.parent.mkdir(parents=True, exist_ok=True)
                save(path, [bundle.encode()])
    assert "</script" not in bundle.lower() and "<!--" not in bundle
    return bundle


def _cache_folder() -> Path:
    """The user's folder for files that can be made again."""
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given, "tiewise")
    try:
        return Path.home() / ".cache" / "tiewise"
    except RuntimeError:  # there is no home, and no file can be kept
        return Path(os.devnull, "tiewise")


@cache
def _environment() -> Any:
    jinja2 = need("jinja2", "A report", "report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_text,
    )
    environment.filters |= {
        "count": "{:,}".format,
        "number": PLAIN.number,
        "signed": _signed,
        "share": format_percent,
        "p_value": PLAIN.p_value,
        "sentence": add_zeros,
    }
    environment.globals |= {
        "ranks": format_ranks,
        "signed": _signed,
        "end": _end,
        "format_ties": format_ties,
        "format_statistic": format_statistic,
        "is_wide": is_wide,
    }
    return environment


def _escape_text(value: Any) -> Any:
    """Text that is not HTML yet, with control characters shown as escapes."""
    return escape_controls(value) if type(value) is str else value


def _signed(value: float | None) -> str:
    """A difference with its sign; one that rounds to zero has no sign.

    >>> _signed(0.25), _signed(-0.0), _signed(-0.00001)
    ('+0.2500', '0.0000', '0.0000')
    """
    return PLAIN.signed(value) if value is None or PLAIN.differ(value, 0.0) else PLAIN.number(0.0)


def _end(value: float) -> str:
    """An end of an interval of differences with its sign, also if it rounds to zero.

    >>> _end(0.25), _end(0.0), _end(-0.00001)
    ('+0.2500', '0', '<0')
    """
    return PLAIN.signed(value) if PLAIN.differ(value, 0.0) else PLAIN.end(value)


def _markup(text: str) -> Any:
    return need("jinja2", "A report", "report").utils.markupsafe.Markup(text)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
