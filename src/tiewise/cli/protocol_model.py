"""``tiewise protocol model``: models in several types on texts, each with table, LaTeX, figures, page and JSON."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import EXECUTION, INPUT, MEASURES, OUTPUT, SCORES, argument, command, option
from tiewise.cli.inputs import collect_warnings
from tiewise.errors import InputError, MissingExtraError

__all__ = ["model_command"]

EXAMPLES = (
    "tiewise protocol model my-reranker --data my-data -o results",
    "tiewise protocol model BAAI/bge-reranker-v2-m3 --data my-data --dtype float32 --dtype bfloat16 -o results",
    "tiewise protocol model --config examples/paper.toml -o results",
)
#: What decides the last bits of a model's scores.
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "safetensors", "numpy")
#: The keys of a configuration: for all models, for one model, for one data set.
COMMON = ("dtypes", "levels", "batch_size", "max_length", "device", "depth", "measures", "max_loss", "seed")
OF_MODEL = ("name", "revision", "kind", "prompts", "instruction", "max_length", "yes", "no", "trust_remote_code")
OF_DATA = ("name", "revision", "subset", "split", "instruction", "measures")


@command("model", examples=EXAMPLES)
@argument("[NAME]...", "Folders of models, or names of the Hugging Face hub.", into="names")
@option(
    "--data FOLDER",
    INPUT,
    "queries.jsonl, corpus.jsonl, qrels.* and, for reranking, candidates.*; or a data set of the hub.",
    multiple=True,
)
@option("--config FILE", INPUT, "Models, data sets and settings as TOML.", type=options.PATH)
@option(
    "--dtype NAME",
    SCORES,
    "float32, float16 or bfloat16.",
    into="dtypes",
    multiple=True,
    default_note="all; no float16 on a CPU",
)
@option(
    "--level NAME", SCORES, "native, score, logit or head.", into="levels", multiple=True, default_note="all but logit"
)
@option("--kind NAME", SCORES, "bi-encoder, cross-encoder, classifier or yes-no.", default_note="as the folder tells")
@option("--revision NAME", SCORES, "The revision of a model of the hub.", default_note="its newest")
@option("--instruction TEXT", SCORES, "What a model is told to look for.")
@option(
    "--prompt ROLE=TEXT",
    SCORES,
    "Text before a query or document of a bi-encoder; before, after or question of a yes-no model.",
    into="prompts",
    multiple=True,
)
@option("--yes WORD", SCORES, "The word of a yes-no model that means relevant.", default_note="yes")
@option("--no WORD", SCORES, "Its other word.", default_note="no")
@option("--max-length N", EXECUTION, "The longest input in tokens.", type=options.POSITIVE, default_note="the model's")
@option("--batch-size N", EXECUTION, "Inputs at a time.", type=options.POSITIVE, default_note="16")
@option("--device NAME", EXECUTION, "cpu, cuda …", default_note="a GPU if there is one")
@option(
    "--depth N",
    EXECUTION,
    "Documents for each query, if there are no candidates.",
    type=options.POSITIVE,
    default_note="1000",
)
@option("--trust-remote-code", EXECUTION, "Run code that a model of the hub brings.")
@option(
    "-m, --measure NAMES", MEASURES, "One or more measures.", into="measures", multiple=True, default_note="nDCG@10"
)
@option(
    "--max-loss NUMBER", MEASURES, "How much of the first measure may be lost; then rows have a verdict.", type=float
)
@option("-o, --output FOLDER", OUTPUT, "For scores, tables, figures, page and JSON.", type=options.PATH, required=True)
@options.quiet
def model_command(names: Sequence[str], *, config: Path | None, output: Path, quiet: bool, **given: Any) -> None:
    """Run models in several types, and compare their rows.

    A second call continues where the first one stopped, and computes only what is missing.
    """
    experiment = _read_experiment(names, config, given)
    _silence_libraries()
    for data in experiment.data:
        for model in experiment.models:
            _run(experiment, model, data, output, quiet)


# -- what to run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """Models, data sets, and the settings of all."""

    models: Sequence[Mapping[str, Any]]
    data: Sequence[Mapping[str, Any]]
    common: Mapping[str, Any] = field(default_factory=dict)


def _read_experiment(names: Sequence[str], config: Path | None, given: dict[str, Any]) -> Experiment:
    """The experiment of the command line, or of a file; what the command line says wins."""
    data, prompts = given.pop("data"), given.pop("prompts")
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
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
    folders = [_folder_name(one["name"]) for one in models]
    for one in folders:
        if folders.count(one) > 1:
            raise InputError(f"Two models are called '{one}', and would share a folder. Rename one of them.")
    return Experiment(models, found.data, {**found.common, **of_all})


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
        if what and (not isinstance(rows, list) or not rows or not all("name" in row for row in rows)):
            raise InputError(f"{path}: needs [[{what}]] with a name, once or more.")
        for key in (key for row in rows for key in row if key not in known):
            where = f"[[{what}]]" if what else "the file"
            raise InputError(f"{path}: {where} has no key '{key}'. Known are: {', '.join(known)}.")
    return Experiment(models, data, read)


def _folder_name(name: str) -> str:
    """The name of a model or a data set, as that of a folder."""
    return Path(name).resolve().name if Path(name).exists() else name.replace("/", "__")


# -- one model on one data set ------------------------------------------------------------------------------------


def _run(experiment: Experiment, model: Mapping[str, Any], data: Mapping[str, Any], output: Path, quiet: bool) -> None:
    from tiewise.adapters.protocol_models import model as model_rows
    from tiewise.adapters.protocol_models import read_collection
    from tiewise.analysis.protocols import protocol
    from tiewise.cli.progress import progress

    settings = dict(experiment.common)
    seed, max_loss = settings.pop("seed", 0), settings.pop("max_loss", None)
    measures = data.get("measures") or settings.pop("measures", None) or ["nDCG@10"]
    settings.pop("measures", None)
    if "instruction" in data:
        settings["instruction"] = data["instruction"]
    settings |= {name: value for name, value in model.items() if name != "name"}
    folder = output / _folder_name(data["name"]) / _folder_name(model["name"])
    title = f"{_folder_name(model['name'])} on {_folder_name(data['name'])}"
    with collect_warnings() as warned:
        texts = read_collection(data["name"], **{key: data.get(key) for key in ("revision", "subset", "split")})
        with progress(title, quiet=quiet) as callback:
            rows = model_rows(model["name"], texts, save=folder, progress=callback, **settings)
        found = protocol(texts.qrels, rows, measures, max_loss=max_loss, seed=seed)
    _write_results(found, texts, rows, folder, title, {"seed": seed, "measures": measures, "data": dict(data), **model})
    _show(found, title, warned, quiet)


def _write_results(
    found: Any, texts: Any, rows: Mapping[str, Any], folder: Path, title: str, settings: Mapping[str, Any]
) -> None:
    """The LaTeX table, the JSON, the figures and the page."""
    from tiewise.io.compression import save

    saved = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    document = {
        **found.to_dict(),
        "settings": {**settings, **saved},
        "environment": _describe_environment(saved["device"]),
    }
    save(folder / "protocol.json", [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"])
    save(folder / "table.tex", [found.to_latex().encode()])
    runs = {name: row.run for name, row in rows.items()}
    try:
        tw.write_report(
            texts.qrels, runs, folder / "report.html", found.measures, reference=found.reference, title=title
        )
    except MissingExtraError as error:
        from tiewise.cli.program import print_note

        print_note(f"no figures and no page: {error}")


def _show(found: Any, title: str, warned: Sequence[str], quiet: bool) -> None:
    """The table, on standard output."""
    from tiewise.cli.output import screen, write
    from tiewise.cli.program import print_note
    from tiewise.tables.text import render_text

    how = screen()
    write(f"{title}\n{render_text(found._section(), how['width'], colour=how['colour'])}", styled=True)
    if not quiet:
        print_note(*warned)


def _describe_environment(device: str) -> dict[str, Any]:
    """Versions and hardware: they decide the last bits of a model's scores."""
    import torch

    def installed(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    gpus = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    return {
        "versions": {
            "python": platform.python_version(),
            "tiewise": tw.__version__,
            **{name: installed(name) for name in PACKAGES},
        },
        "device": device,
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": {"kernels": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()},
        "gpus": gpus,
    }


def _silence_libraries() -> None:
    """Turn off the progress bars of libraries while they load what is on this machine already."""
    library = sys.modules.get("transformers") or _import_transformers()
    if library is not None:
        library.utils.logging.disable_progress_bar()
        library.utils.logging.set_verbosity_error()


def _import_transformers() -> Any:
    from tiewise.tables.optional import installed

    return installed("transformers")
