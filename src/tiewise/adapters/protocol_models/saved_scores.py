"""The folder in which the scores of a model are kept while they are computed, so that a later call continues.

What a model gives is computed in parts of a fixed size. A part is written under a temporary name and then renamed, so a
file is complete or not there. When all parts are there, they become one file. So it does not matter for any byte where
an earlier call stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tiewise.errors import InputError
from tiewise.io.compression import PathLike, remove_stale, save
from tiewise.results.optional import need
from tiewise.results.wording import spell_option

Tensors = dict[str, Any]
AGAIN = "Delete it, and it is computed again."


class SavedScores:
    """A folder of tensors and of the settings that they were computed with; without a folder, nothing is kept."""

    def __init__(self, folder: PathLike | None, settings: Mapping[str, Any]):
        self.folder, self._settings = None if folder is None else Path(folder), dict(settings)
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror or error}).") from None
        remove_stale(self.folder)
        if (self.folder / "settings.json").exists():
            self._check_settings(self.folder / "settings.json")

    def _check_settings(self, path: Path) -> None:
        """Require the settings of earlier calls."""
        try:
            earlier = dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            raise InputError(f"{path}: is damaged. Delete the folder, and it is computed again.") from None
        for name, value in self._settings.items():
            if earlier.get(name) != value:
                what = {"model_revision": "another revision of the model", "data_files": "other texts"}.get(name)
                what = what or f"{spell_option(name, earlier.get(name))}, not {value!r}"
                raise InputError(f"{path}: these scores are of {what}. Choose another folder, or delete this one.")

    def tensors(self, name: str, parts: int, compute: Callable[[int], Tensors], done: Callable[[int], None]) -> Tensors:
        """The tensors of all parts, joined; `compute` makes those of a part that is not there yet."""
        torch = need("torch", "Running a model", "transformers")
        whole = self._path(name)
        paths = [self._path(f"{name}.part{part:05}") for part in range(parts)]
        if whole is not None and whole.exists():
            joined = self._read(whole, name)
            for part in range(parts):
                done(part)
        else:
            made = []
            for part, path in enumerate(paths):
                if path is not None and path.exists():
                    made.append(self._read(path, name))
                else:
                    made.append({key: value.detach().cpu().contiguous() for key, value in compute(part).items()})
                    self._write(path, name, made[-1])
                done(part)
            keys = dict.fromkeys(key for one in made for key in one)
            joined = {key: torch.cat([one[key] for one in made if key in one]) for key in keys}
            self._write(whole, name, joined)
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        return joined

    def _path(self, stem: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{stem}.safetensors"

    def _write(self, path: Path | None, name: str, tensors: Tensors) -> None:
        if path is None:
            return
        library = need("safetensors.torch", "Saving scores", "precision")
        settings = path.parent / "settings.json"
        if not settings.exists():  # not before there are scores: a call that fails leaves none
            save(settings, [json.dumps(self._settings, indent=1, ensure_ascii=False).encode(), b"\n"])
        save(path, [library.save(tensors, metadata={"dtype": name})])

    def _read(self, path: Path, name: str) -> Tensors:
        safetensors = need("safetensors", "Reading saved scores", "precision")
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                found = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 – it is not a mapping
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            problem = " ".join(str(error).split())
            raise InputError(f"{path}: is damaged ({problem}). {AGAIN}") from None
        if metadata.get("dtype") != name:
            raise InputError(f"{path}: holds scores of {metadata.get('dtype')}, not of {name}. {AGAIN}")
        return found
