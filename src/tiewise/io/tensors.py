"""Arrays by name from files: ``.npz``, ``.npy`` and ``.safetensors``, low-precision types included.

A safetensors file is the length of a header, the header as JSON, and the arrays one after another; they are mapped into
memory, not read. bfloat16 and float8 come as the types of ml_dtypes (``tiewise[precision]``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import need
from tiewise.errors import InputError
from tiewise.io.streams import PathLike

__all__ = ["read_tensors"]

#: The types of safetensors, as NumPy or ml_dtypes call them.
TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
LONGEST_HEADER = 100_000_000  # bytes: what the format allows


def read_tensors(path: PathLike) -> dict[str, NDArray[Any]]:
    """The arrays of a file by their names; that of a ``.npy`` file has the name of the file."""
    name = os.fspath(path)
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    suffix = Path(name).suffix.lower()
    if suffix not in readers:
        raise InputError(f"{name}: '{suffix}' holds no arrays. Give a file that ends in {', '.join(readers)}.")
    try:
        return readers[suffix](name)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None
    except (ValueError, EOFError, KeyError) as error:
        raise InputError(f"{name}: is no whole {suffix} file ({error}).") from None


def _npy(name: str) -> dict[str, NDArray[Any]]:
    return {Path(name).stem: _known(np.load(name, mmap_mode="r", allow_pickle=False), name)}


def _npz(name: str) -> dict[str, NDArray[Any]]:
    from zipfile import BadZipFile

    try:
        with np.load(name, allow_pickle=False) as arrays:
            return {key: _known(arrays[key], f"{name}: {key}") for key in arrays.files}
    except BadZipFile as error:
        raise ValueError(error) from None


def _known(array: NDArray[Any], where: str) -> NDArray[Any]:
    """The array, unless NumPy forgot its type, as it does for bfloat16."""
    if array.dtype.kind != "V":
        return array
    if array.dtype.itemsize == 2:
        return array.view(_type("bfloat16"))
    raise InputError(f"{where}: NumPy did not keep the type of these numbers. Save them as safetensors, or as float32.")


def _safetensors(name: str) -> dict[str, NDArray[Any]]:
    with Path(name).open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= LONGEST_HEADER:
            raise ValueError("its header has no length")
        header = json.loads(file.read(length))
    data = np.memmap(name, mode="r", offset=8 + length) if Path(name).stat().st_size > 8 + length else np.zeros(0, "u1")
    arrays = {}
    for key, one in header.items():
        if key != "__metadata__":
            if one["dtype"] not in TYPES:
                raise InputError(f"{name}: '{key}' is of type {one['dtype']}, which is not known here.")
            start, stop = one["data_offsets"]
            arrays[key] = data[start:stop].view(_type(TYPES[one["dtype"]])).reshape(one["shape"])
    return arrays


def _type(name: str) -> Any:
    """A type of numbers; those that NumPy lacks are ml_dtypes'."""
    if hasattr(np, name) or name == "bool":
        return np.dtype(name)
    return np.dtype(getattr(need("ml_dtypes", f"Reading {name}", "precision"), name))
