"""``tiewise protocol model``: models in several types on texts, each with table, LaTeX, figures, page and JSON."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.analysis.options import Options
from tiewise.analysis.protocol_tables import POINTS, paper_section
from tiewise.analysis.protocols import check_settings
from tiewise.cli.command import PATH, SHORT, Number, argument, command, option
from tiewise.cli.inputs import collect_warnings
from tiewise.cli.output import screen, write
from tiewise.cli.program import print_note
from tiewise.cli.progress import progress
from tiewise.errors import InputError, MissingExtraError
from tiewise.io.compression import save
from tiewise.results.latex import render_latex
from tiewise.results.optional import installed
from tiewise.results.view import View

#: What decides the last bits of a model's scores.
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "safetensors", "numpy")
#: The keys of a configuration that say how rows are measured, not how they are made.
MEASURING = ("measures", "max_loss", "drop_self", "seed")
#: All keys: for all models, for one model, for one data set.
COMMON = ("dtypes", "levels", "batch_size", "max_length", "device", "depth", *MEASURING)
OF_MODEL = ("name", "revision", "kind", "prompts", "instruction", "max_length", "yes", "no", "trust_remote_code")
OF_DATA = ("name", "revision", "subset", "split", "instruction", "measures", "drop_self")


class Loss(Number):
    """A fraction; the error for a percentage says how to write it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of a text."""
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number. Write 0.01 for one point.", param, ctx)


max_loss = option("--max-loss NUMBER", SHORT, "How much may be lost; 0.01 is one point.", type=Loss())


@command("model", examples=("tiewise protocol model my-reranker --data my-data -o results",))
@argument("[NAME]...", "Folders of models, or names of the Hugging Face hub.", into="names", type=str)
@option(
    "--data FOLDER",
    SHORT,
    "queries.jsonl, corpus.jsonl, qrels.*, candidates.* to rerank; or a data set of the hub.",
    multiple=True,
)
@option("--config FILE", SHORT, "Models, data and settings as TOML.")
@option("--dtype NAME", SHORT, "float32, bfloat16; float16 on a GPU.", into="dtypes", multiple=True)
@option("--level NAME", SHORT, "native, score, head; logit if named.", into="levels", multiple=True)
@option("--kind NAME", SHORT, "bi-encoder, cross-encoder, classifier, yes-no.")
@option("--revision NAME", SHORT, "Of a model of the hub.", default_note="the newest")
@option("--instruction TEXT", SHORT, "What the model is told to look for.")
@option("--prompt ROLE=TEXT", SHORT, "query, document, before, after, question.", into="prompts", multiple=True)
@option("--yes WORD", SHORT, "The answers of a yes-no model.", default_note="yes, no")
@option("--no WORD", SHORT, "The answers of a yes-no model.", default_note="yes, no")
@option("--max-length N", SHORT, "The longest input in tokens.", default_note="the model's")
@option("--batch-size N", SHORT, "Inputs at a time.", default_note="16")
@option("--device NAME", SHORT, "cpu, cuda …", default_note="a GPU if there is one")
@option("--depth N", SHORT, "Documents a query, without candidates.", default_note="1000")
@option("--trust-remote-code", SHORT, "Run code that a model brings.")
@option("-m, --measure NAMES", SHORT, "Measures.", into="measures", multiple=True, default_note="nDCG@10")
@max_loss
@option("--drop-self", SHORT, "Drop documents that have the id of their query.")
@option("--wide", SHORT, "All columns: std, CV, bounds, RBO, bytes, verdict …")
@option("-o, --output FOLDER", SHORT, "For scores, tables, figures, page and JSON.", type=PATH, required=True)
@option("--quiet", SHORT, "Write no notes.")
def model_command(
    names: Sequence[str], *, config: Path | None, output: Path, wide: bool, quiet: bool, **given: Any
) -> None:
    """Run models in several types on texts; a second call resumes."""
    from tiewise.adapters.protocol_models import check_options

    experiment = _read_experiment(names, config, given)
    for data in experiment.data:  # before a model runs for hours
        _check_measuring(experiment, data)
    for model in experiment.models:
        check_options(**experiment.running(model))
    _silence_libraries()
    for data in experiment.data:
        folder = output / _folder_name(data["name"])
        try:
            found = {
                _folder_name(model["name"]): _run(experiment, model, data, output, wide=wide, quiet=quiet)
                for model in experiment.models
            }
        except KeyboardInterrupt:
            print_note(f"What is finished is kept in {folder}. The same command goes on from there.")
            raise
        latex = render_latex(paper_section(found | _read_others(folder, found), POINTS))
        save(folder / "table.tex", [latex.encode()])


def _read_others(folder: Path, found: Mapping[str, Any]) -> dict[str, Any]:
    """The results of earlier calls for other models, as far as one table can show them beside those of this call."""

    def kind(document: Mapping[str, Any]) -> list[Any]:
        measure, texts = document["rows"][0]["measure"], document["settings"]["data_files"]
        return [document["schema"], document["reference"], document["oblivious"], measure, texts]

    wanted, others = kind(next(iter(found.values()))), {}
    for path in sorted(folder.glob("*/protocol.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if path.parent.name not in found and kind(document) == wanted:
                others[path.parent.name] = document
        except (ValueError, LookupError, TypeError):
            raise InputError(f"{path}: is not a result of this version. Delete it, or run its model again.") from None
    return others


# -- what to run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """Models, data sets, and the settings of all."""

    models: Sequence[Mapping[str, Any]]
    data: Sequence[Mapping[str, Any]]
    common: Mapping[str, Any] = field(default_factory=dict)

    def running(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """How a model is run: what `rows.model` is given."""
        common = {key: value for key, value in self.common.items() if key not in MEASURING}
        return common | {key: value for key, value in model.items() if key != "name"}

    def measuring(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """How the rows of a data set are measured: what `protocol` is given."""
        return {key: value for key, value in {**self.common, **data}.items() if key in MEASURING}


def _read_experiment(names: Sequence[str], config: Path | None, given: dict[str, Any]) -> Experiment:
    """The experiment of the command line, or of a file; what the command line says wins."""
    data, prompts = given.pop("data"), given.pop("prompts")
    given = {name: value for name, value in given.items() if value is not None and value is not False and value != ()}
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    if prompts:
        told["prompts"] = dict(map(_read_prompt, prompts))
    if config is None:
        if not names or not data:
            raise InputError("Give the names of models and --data FOLDER, or --config FILE.")
        found = Experiment([{"name": name} for name in names], [{"name": name} for name in data])
    elif names:
        raise InputError("Give models by name, or with --config, not both.")
    else:
        found = _read_config(config)
        if data:
            found = Experiment(found.models, [{"name": name} for name in data], found.common)
    of_model = {name: value for name, value in told.items() if name in OF_MODEL and name not in COMMON}
    of_all = {name: value for name, value in told.items() if name in COMMON}
    models = [{**model, **of_model, **{k: v for k, v in of_all.items() if k in model}} for model in found.models]
    sets = [{key: value for key, value in one.items() if key not in of_all} for one in found.data]
    for what, rows in (("models", models), ("data sets", sets)):
        folders = [_folder_name(one["name"]) for one in rows]
        for one in folders:
            if folders.count(one) > 1:
                raise InputError(f"Two {what} are called '{one}', and would share a folder. Rename one of them.")
    return Experiment(models, sets, {**found.common, **of_all})


def _read_prompt(text: str) -> tuple[str, str]:
    role, equals, prompt = text.partition("=")
    if not equals:
        raise InputError(f"--prompt {text}: write ROLE=TEXT, such as query='query: '.")
    return role, prompt


def _read_config(path: Path) -> Experiment:
    """An experiment from a file of TOML."""
    try:
        if sys.version_info >= (3, 11):
            import tomllib as toml
        else:
            import tomli as toml
    except ImportError:
        raise InputError("--config needs Python 3.11, or: pip install tomli") from None
    try:
        read = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except ValueError as error:
        raise InputError(f"{path}: is not TOML ({error}).") from None
    models, data = read.pop("model", []), read.pop("data", [])
    for what, rows, known in (("model", models, OF_MODEL), ("data", data, OF_DATA), ("", [read], COMMON)):
        if what and not (isinstance(rows, list) and rows and all(isinstance(row.get("name"), str) for row in rows)):
            raise InputError(f"{path}: needs [[{what}]] with a name, once or more.")
        for key in (key for row in rows for key in row if key not in known):
            where = f"[[{what}]]" if what else "the file"
            raise InputError(f"{path}: {where} has no key '{key}'. Known are: {', '.join(known)}.")
    return Experiment(models, data, read)


def _folder_name(name: str) -> str:
    """The name of a model or a data set, as that of a folder."""
    return Path(name).absolute().name if Path(name).exists() else name.replace("/", "__")


def _check_measuring(experiment: Experiment, data: Mapping[str, Any]) -> None:
    how = experiment.measuring(data)
    depth = experiment.common.get("depth")
    for measure in check_settings(how.get("measures", "nDCG@10"), how.get("max_loss")):
        if isinstance(depth, int) and depth < (measure.cutoff or 0):
            raise InputError(f"--depth {depth} is less than {measure} needs. Raise it, or leave it out.")
    Options(**{key: value for key, value in how.items() if key in ("drop_self", "seed")})
    for key in ("revision", "subset", "split", "instruction"):
        if not isinstance(data.get(key, ""), str):
            raise InputError(f"{data['name']}: the {key} is {data[key]!r}. Give a text.")


# -- one model on one data set ------------------------------------------------------------------------------------


def _run(
    experiment: Experiment, model: Mapping[str, Any], data: Mapping[str, Any], output: Path, *, wide: bool, quiet: bool
) -> dict[str, Any]:
    """Run a model on a data set, write its results, show its table, and return the document of `protocol.json`."""
    from tiewise.adapters.protocol_models import DEFAULT_DEPTH, read_collection
    from tiewise.results.text import render_text

    how = experiment.measuring(data)
    cutoffs = [measure.cutoff or 0 for measure in check_settings(how.get("measures", "nDCG@10"))]
    settings = {"depth": max(DEFAULT_DEPTH, *cutoffs), **experiment.running(model)}
    names = _folder_name(data["name"]), _folder_name(model["name"])
    title, folder = f"{names[1]} on {names[0]}", output.joinpath(*names)
    with collect_warnings() as warned:
        texts = read_collection(data["name"], **{key: data.get(key) for key in ("revision", "subset", "split")})
        texts = replace(texts, instruction=data.get("instruction"))
        with progress(title, quiet=quiet) as callback:
            rows = tw.rows.model(model["name"], texts, save=folder, progress=callback, **settings)
        found = tw.protocol(texts.qrels, rows, **how)
    saved = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    used = {"model": dict(model), "data": dict(data), "seed": 0, **how, **saved}
    document = {**found.to_dict(), "settings": used, "environment": _describe_environment(saved["device"])}
    save(folder / "protocol.json", [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"])
    undrawn = _draw(found, texts.qrels, rows, folder, title, drop_self=how.get("drop_self", False))
    notes = [*warned, *found.notes, *undrawn]
    view = screen()
    section = found._section(View(wide=wide, width=view["width"]))._replace(notes=() if quiet else notes)
    write(f"{title}\n{render_text(section, view['width'], colour=view['colour'])}\n", styled=True)
    return document


def _draw(
    found: tw.Protocol, qrels: tw.Qrels, rows: Mapping[str, tw.Row], folder: Path, title: str, **options: Any
) -> Iterator[str]:
    """Draw the figures and write the page; notes on what could not be."""
    runs: dict[str, Any] = {name: row.run for name, row in rows.items()}
    try:
        tw.figures.save(found.plot.cutoffs(range(1, 21), title=title), folder / "cutoffs.svg")
        if len(runs) > 1:
            tw.figures.save(found.plot.loss(title=title), folder / "loss.svg")
        page: dict[str, Any] = {"reference": found.reference, "title": title, "protocol": found, **options}
        tw.write_page(qrels, runs, folder / "report.html", found.measures, **page)
    except MissingExtraError as error:
        yield f"There are no figures and no page. {error}"


def _describe_environment(device: str) -> dict[str, Any]:
    """Versions and hardware: they decide the last bits of a model's scores."""
    import torch

    def installed_version(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    gpus = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    return {
        "versions": {
            "python": platform.python_version(),
            "tiewise": tw.__version__,
            **{name: installed_version(name) for name in PACKAGES},
        },
        "device": device,
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": {"kernels": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()},
        "gpus": gpus,
    }


def _silence_libraries() -> None:
    """Turn off what transformers prints while it loads a model."""
    library = installed("transformers")
    if library is not None:
        library.utils.logging.disable_progress_bar()
        library.utils.logging.set_verbosity_error()
