"""Arrays by name from ``.npz``, ``.npy`` and ``.safetensors`` files, low-precision types included.

The safetensors package checks such a file and says what is in it. The arrays are then mapped into memory, not read, so
a file may be larger than the memory. bfloat16 and float8 arrays have the types of ml_dtypes. Both packages come with
``tiewise[precision]``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import LazyMapping
from tiewise.errors import InputError, TiewiseError, name_memory_errors
from tiewise.io.compression import PathLike, Reread, check_expansion
from tiewise.results.optional import need

#: The types of safetensors, by the names that NumPy and ml_dtypes use.
DTYPES = {
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
NPY_MAGIC = b"\x93NUMPY"


def read_tensors(path: PathLike, also: Iterable[str] = ()) -> Mapping[str, NDArray[Any]]:
    """The arrays of a file by name, read when they are used. The array of a ``.npy`` file has the name of the file.

    `also` are suffixes that the caller reads itself: an error names them too.
    """
    name = os.fspath(path)
    readers: dict[str, Callable[[str], Mapping[str, NDArray[Any]]]] = {
        ".npy": _read_npy,
        ".npz": _Archive,
        ".safetensors": _read_safetensors,
    }
    suffix = Path(name).suffix.lower()
    known = ", ".join([*readers, *also])
    if Path(name).is_dir():
        raise InputError(f"{name}: is a folder. Give a file that ends in {known}.")
    if suffix not in readers:
        problem = f"'{suffix}' is not a format for arrays" if suffix else "the file name has no extension"
        raise InputError(f"{name}: {problem}. Give a file that ends in {known}.")
    with _name_errors(name):
        return readers[suffix](name)


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Turn whatever a library raises for a missing or damaged file into an `InputError` with its name."""
    try:
        with name_memory_errors(name), np.errstate(over="ignore"):  # NumPy multiplies a shape before it checks it
            yield
    except TiewiseError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # the libraries raise anything for a damaged file
        problem = " ".join(str(error).split()) or type(error).__name__
        suffix = Path(name).suffix.lower()
        raise InputError(f"{name}: is not a complete {suffix} file ({problem}). Save or download it again.") from None


def _read_npy(name: str) -> dict[str, NDArray[Any]]:
    with Path(name).open("rb") as file:
        if file.read(len(NPY_MAGIC)) != NPY_MAGIC:
            raise ValueError("it does not start like one")
    return {Path(name).stem: _load_array(partial(np.load, name, mmap_mode="r", allow_pickle=False), name)}


class _Archive(LazyMapping[str, NDArray[Any]]):
    """The arrays of a ``.npz`` file, each of which is read when it is first asked for."""

    def __init__(self, name: str):
        from zipfile import is_zipfile

        self._name = name
        self._compressed = self._plain = 0  # bytes of what is loaded
        with Path(name).open("rb") as file:
            if not is_zipfile(file):
                raise ValueError("it is not a zip archive")
        self._reread = Reread(name)
        with np.load(name, allow_pickle=False) as arrays:
            super().__init__(arrays.files)

    def _make_value(self, key: str) -> NDArray[Any]:
        with _name_errors(self._name):
            self._reread.check()
            return self._load(key)

    def _load(self, key: str) -> NDArray[Any]:
        with np.load(self._name, allow_pickle=False) as arrays:
            where = f"{self._name}: {key!r}"
            member = arrays.zip.NameToInfo.get(f"{key}.npy") or arrays.zip.getinfo(key)
            self._compressed += member.compress_size
            self._plain += member.file_size
            check_expansion(where, self._compressed, self._plain)
            return _load_array(partial(arrays.__getitem__, key), where)


def _load_array(load: Callable[[], Any], where: str) -> NDArray[Any]:
    """The array, if NumPy can load it. NumPy saves bfloat16 and float8 without the name of their type."""
    unknown_dtype = InputError(
        f"{where} holds numbers of a type that NumPy did not save. Save them as safetensors, or as float32."
    )
    try:
        array = load()
    except ValueError as error:
        if "dtype descriptor" in str(error):
            raise unknown_dtype from None
        if "bject" not in str(error):  # NumPy writes "Object arrays" or "Python objects"
            raise
        raise InputError(
            f"{where} holds Python objects. They are not loaded, because that could run code. Save ids as text: "
            "numpy.array(ids, dtype=str)."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{where} is not an array. Save it with numpy.savez.")
    if array.dtype.kind != "V":
        return array
    if array.dtype.itemsize == 2:
        return array.view(_dtype("bfloat16"))
    raise unknown_dtype


def _read_safetensors(name: str) -> dict[str, NDArray[Any]]:
    """The arrays, mapped into memory. `get_slice` would copy them, and NumPy has no float8 for it to return."""
    safetensors = need("safetensors", "Reading .safetensors files", "precision")
    with Path(name).open("rb"):
        pass  # an error of the operating system is clearer than that of the package
    try:
        with safetensors.safe_open(name, framework="numpy") as file:
            # In the order of the data, which follow each other without gaps up to the end of the file.
            tensors = {key: file.get_slice(key) for key in file.offset_keys()}
            described = {key: (tensor.get_dtype(), tensor.get_shape()) for key, tensor in tensors.items()}
    except safetensors.SafetensorError as error:
        raise ValueError(str(error).removeprefix("Error while deserializing header: ")) from None
    dtypes, sizes = {}, {}
    for key, (dtype, shape) in described.items():
        if dtype not in DTYPES:
            raise InputError(
                f"{name}: {key!r} is of type {dtype}, which is not supported. Save it as one of: {', '.join(DTYPES)}."
            )
        dtypes[key] = _dtype(DTYPES[dtype])
        sizes[key] = prod(shape) * dtypes[key].itemsize
    data = np.memmap(name, mode="r")
    start, arrays = len(data) - sum(sizes.values()), {}
    for key, (_, shape) in described.items():
        arrays[key] = data[start : start + sizes[key]].view(dtypes[key]).reshape(shape)
        start += sizes[key]
    return arrays


def _dtype(name: str) -> np.dtype[Any]:
    """A type by name. The types that NumPy does not have come from ml_dtypes."""
    if hasattr(np, name) or name == "bool":
        return np.dtype(name)
    return np.dtype(getattr(need("ml_dtypes", f"Reading {name}", "precision"), name))
