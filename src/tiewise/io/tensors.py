"""Arrays by name from files: ``.npz``, ``.npy`` and ``.safetensors``, low-precision types included.

A safetensors file is the length of a header, the header as JSON, and the arrays one after another; they are mapped into
memory, not read. bfloat16 and float8 come as the types of ml_dtypes (``tiewise[precision]``).
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.errors import InputError, TiewiseError
from tiewise.io.compression import PathLike
from tiewise.tables.optional import need

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
NPY = b"\x93NUMPY"  # how a .npy file begins


def read_tensors(path: PathLike) -> dict[str, NDArray[Any]]:
    """The arrays of a file by their names; that of a ``.npy`` file has the name of the file."""
    name = os.fspath(path)
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    suffix = Path(name).suffix.lower()
    if Path(name).is_dir():
        raise InputError(f"{name}: is a folder. Give a file that ends in {', '.join(readers)}.")
    if suffix not in readers:
        found = f"'{suffix}' holds no arrays" if suffix else "its name has no ending that says what it holds"
        raise InputError(f"{name}: {found}. Give a file that ends in {', '.join(readers)}.")
    try:
        return readers[suffix](name)
    except TiewiseError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None
    except (ValueError, EOFError, KeyError, zlib.error) as error:
        raise InputError(f"{name}: is no whole {suffix} file ({error}).") from None


def _npy(name: str) -> dict[str, NDArray[Any]]:
    with Path(name).open("rb") as file:
        if file.read(len(NPY)) != NPY:
            raise ValueError("it does not begin as one")
    return {Path(name).stem: _known(partial(np.load, name, mmap_mode="r", allow_pickle=False), name)}


def _npz(name: str) -> dict[str, NDArray[Any]]:
    from zipfile import BadZipFile, is_zipfile

    with Path(name).open("rb") as file:
        if not is_zipfile(file):
            raise ValueError("it is no archive")
    try:
        with np.load(name, allow_pickle=False) as arrays:
            return {key: _known(partial(arrays.__getitem__, key), f"{name}: '{key}'") for key in arrays.files}
    except BadZipFile as error:
        raise ValueError(error) from None


def _known(load: Callable[[], Any], where: str) -> NDArray[Any]:
    """The array, unless it holds what cannot be known, such as a type that NumPy forgot, as it does for bfloat16."""
    forgotten = InputError(
        f"{where} holds numbers of a type that NumPy did not keep. Save them as safetensors, or as float32."
    )
    try:
        array = load()
    except ValueError as error:
        if "dtype descriptor" in str(error):
            raise forgotten from None
        if "bject" not in str(error):  # NumPy says "Object arrays" or "Python objects"
            raise
        raise InputError(
            f"{where} holds Python objects, which are not read, as that could run code. Save ids as text: "
            "numpy.array(ids, dtype=str)."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{where} is no array. Save it with numpy.savez.")
    if array.dtype.kind != "V":
        return array
    if array.dtype.itemsize == 2:
        return array.view(_type("bfloat16"))
    raise forgotten


def _safetensors(name: str) -> dict[str, NDArray[Any]]:
    with Path(name).open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= LONGEST_HEADER:
            raise ValueError("its header has no length")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no table of arrays")
    data = np.memmap(name, mode="r", offset=8 + length) if Path(name).stat().st_size > 8 + length else np.zeros(0, "u1")
    arrays = {}
    for key, one in header.items():
        if key != "__metadata__":
            arrays[key] = _array(data, one, f"{name}: '{key}'")
    return arrays


def _array(data: NDArray[Any], described: Any, where: str) -> NDArray[Any]:
    """One array, as its line in the header describes it."""
    if not isinstance(described, dict) or not {"dtype", "shape", "data_offsets"} <= described.keys():
        raise ValueError("its header does not describe every array")
    kind, shape, offsets = described["dtype"], described["shape"], described["data_offsets"]
    if not isinstance(kind, str) or kind not in TYPES:
        raise InputError(f"{where} is of type {kind}, which is not read here. Save it as one of: {', '.join(TYPES)}.")
    numbers = [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) else [None]
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or len(offsets) != 2:
        raise ValueError("its header does not say where every array is")
    start, stop = offsets
    if stop > len(data):
        raise ValueError(f"it ends {stop - len(data):,} bytes too early")
    return data[start:stop].view(_type(TYPES[kind])).reshape(shape)


def _type(name: str) -> Any:
    """A type of numbers; those that NumPy lacks are ml_dtypes'."""
    if hasattr(np, name) or name == "bool":
        return np.dtype(name)
    return np.dtype(getattr(need("ml_dtypes", f"Reading {name}", "precision"), name))
