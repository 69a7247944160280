"""Damaged files of arrays must be read, or refused by an error of Tiewise that names the file.

Small .npy, .npz and .safetensors files are changed at random, as a broken program or disk might change them, above
all in their headers. Whatever is read is looked at to its last number. A file that raises another error is made as
small as it can be, shown, and kept.
"""

from __future__ import annotations

import io
import json
import random
import sys
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fuzzing import Fuzzer, main  # noqa: E402

from tiewise.errors import TiewiseError  # noqa: E402
from tiewise.io.tensors import read_tensors  # noqa: E402

CORPUS = HERE / "corpus-tensors"
#: Words of the three kinds of header, and numbers at the limits of their types.
WORDS = [
    *b"descr fortran_order shape True False None F32 F16 BF16 F8_E4M3 I64 BOOL dtype data_offsets __metadata__".split(),
    *b"'<f4' '<f8' '|O' '<U3' '|V2' '|S0' '<M8[s]' 'bfloat16' [('a','<f4')] ('<f4',(2,)) (2,3) (0,) () (-1,)".split(),
    *b"0 1 2 -1 255 65535 2147483648 4294967296 9223372036854775807 9223372036854775808 18446744073709551616".split(),
    *b"1e9 0x10 1_000 9**9 inf nan {} [] null true [[[[ {{{{ (((( , : ' \" \\ \n \0 \xff \xc3\xa9 PK".split(b" "),
    b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"9" * 5000, b"(" * 500,
]  # fmt: skip


def seeds() -> dict[str, list[bytes]]:
    """Valid files by suffix, and the files of the corpus."""
    arrays = [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        np.array(["q1", "q2"]),
        np.array([b"q1", b"q2"]),
        np.zeros((0, 3), np.float16),
        np.array(5, np.int64),
        np.arange(4, dtype=np.uint16).view("V2"),
    ]
    found: dict[str, list[bytes]] = {".npy": [], ".npz": [], ".safetensors": []}
    for array in arrays:
        file = io.BytesIO()
        np.save(file, array)
        found[".npy"].append(file.getvalue())
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, docs=arrays[0], ids=arrays[2])
        found[".npz"].append(file.getvalue())
    for dtype, size in (("F32", 4), ("BF16", 2), ("F8_E4M3", 1)):
        header = {"docs": {"dtype": dtype, "shape": [2, 3], "data_offsets": [0, 6 * size]}}
        header["none"] = {"dtype": dtype, "shape": [0], "data_offsets": [6 * size, 6 * size]}
        text = json.dumps(header).encode()
        found[".safetensors"].append(len(text).to_bytes(8, "little") + text + bytes(range(6 * size)))
    for path in sorted(CORPUS.iterdir()):
        found[path.suffix].append(path.read_bytes())
    return found


def changed(data: bytes, suffix: str, rng: random.Random) -> bytes:
    """A file with one change, mostly near its beginning; that of an archive may be inside one of its members."""
    if suffix == ".npz" and rng.random() < 0.5 and (inner := _changed_member(data, rng)):
        return inner
    limit = len(data) if rng.random() < 0.2 else min(len(data), 160)
    place, other = rng.randint(0, limit), rng.randint(0, limit)
    low, high = min(place, other), max(place, other)
    match rng.randrange(8):
        case 0:
            return data[:place] + rng.randbytes(1) + data[place + 1 :]
        case 1:
            bit = 1 << rng.randrange(8)
            return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :] if place < len(data) else data
        case 2:
            return data[:low] + data[min(high, low + 20) :]
        case 3:
            return data[: rng.randint(0, len(data))]
        case 4:
            return data[:place] + rng.choice(WORDS) + data[place:]
        case 5:
            word = rng.choice(WORDS)
            return data[:place] + word + data[place + len(word) :]
        case 6:
            return (
                data[:place]
                + rng.choice([0, 1, 255, 2**31, 2**32 - 1, 2**63]).to_bytes(8, "little")
                + data[place + 8 :]
            )
        case _:
            return data + rng.randbytes(rng.randint(1, 20))


def _changed_member(data: bytes, rng: random.Random) -> bytes:
    """An archive with a changed member, or with a member that is none of NumPy's; empty if it is not an archive."""
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            names = old.namelist()
            chosen = rng.choice(names)
            for name in names:
                member = old.read(name)
                new_name = (
                    rng.choice([name, name, name, "a", "../x.npy", "docs.npy", "\n.npy"]) if name == chosen else name
                )
                new.writestr(new_name, changed(member, ".npy", rng) if name == chosen else member)
    except Exception:  # it was changed before
        return b""
    return out.getvalue()


def failure(data: bytes, suffix: str, folder: Path) -> str:
    """The error of a file that is none of Tiewise's; nothing if there is none."""
    path = folder / f"file{suffix}"
    path.write_bytes(data)
    try:
        for name, array in read_tensors(path).items():
            assert isinstance(name, str) and isinstance(array, np.ndarray), (name, type(array))
            assert array.dtype.kind != "O" and array.nbytes <= 1 << 28, (array.dtype, array.shape)
            array.tobytes()
    except TiewiseError as error:
        return "" if str(path) in str(error) and "\n" not in str(error) else f"not one line with its name: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


SEEDS = seeds()


def draw(rng: random.Random) -> tuple[str, bytes]:
    """A valid file, or one of the corpus, with some changes."""
    suffix = rng.choice(list(SEEDS))
    data = rng.choice(SEEDS[suffix])
    for _ in range(rng.randint(1, 4)):
        data = changed(data, suffix, rng)
    return suffix, data


FUZZER = Fuzzer(draw, failure)

if __name__ == "__main__":
    main(FUZZER, __doc__, "each was read or refused")
