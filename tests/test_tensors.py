"""Reading arrays from safetensors files: every type, without torch and without reading the data."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tiewise import scoring
from tiewise.errors import MissingExtraError
from tiewise.io.tensors import DTYPES, read_tensors
from tiewise.scoring import definition, host_functions

ml_dtypes = pytest.importorskip("ml_dtypes")
pytest.importorskip("safetensors")


def write(path, **arrays) -> None:
    """Write the format by hand: the length of the header, the header, the arrays."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, start, data = {}, 0, b""
    for key, array in arrays.items():
        data += array.tobytes()
        offsets = [start, start := len(data)]
        header[key] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": offsets}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_every_type_is_mapped_into_memory(tmp_path):
    arrays = {name: np.arange(12).reshape(4, 3).astype(dtype) for name, dtype in DTYPES.items()}
    arrays |= {"scalar": np.array(2.5), "empty": np.zeros((0, 4), np.float32)}
    write(tmp_path / "all.safetensors", **arrays)
    read = read_tensors(tmp_path / "all.safetensors")
    assert read.keys() == arrays.keys()
    for key, array in arrays.items():
        assert isinstance(read[key], np.memmap) or not array.size
        assert read[key].dtype == array.dtype and read[key].shape == array.shape
        np.testing.assert_array_equal(np.asarray(read[key]), array, err_msg=key)


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean", "hamming"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_get_aligned_arrays(fn, dtype, tmp_path, monkeypatch):
    """The arrays of a file begin at any byte, but in C++ a number must lie at a multiple of its size."""
    kernels = pytest.importorskip("tiewise._kernels")

    class Checked:
        def __getattr__(self, name):
            def call(*args):
                assert all(one.flags.aligned for one in args if isinstance(one, np.ndarray)), name
                return getattr(kernels, name)(*args)

            return call

    rng = np.random.default_rng(0)
    docs = rng.integers(0, 256, (300, 16), np.uint8) if fn == "hamming" else rng.random((300, 16)).astype(dtype)
    for name in range(8):  # until the data begin at an odd byte
        write(tmp_path / "docs.safetensors", **{"x" * name: np.zeros(0, np.uint8), "docs": docs})
        if read_tensors(tmp_path / "docs.safetensors")["docs"].ctypes.data % 8 == 1:
            break
    expected = scoring.Collection(docs, fn=fn)
    for module in (definition, host_functions):
        monkeypatch.setattr(module, "native", lambda name: Checked())
    found = scoring.Collection(tmp_path / "docs.safetensors", fn=fn)
    assert found.search(docs[:3], 5).to_dict() == expected.search(docs[:3], 5).to_dict()
    qrels = {"0": {"3": 1, "9": 0}}
    assert found.tie_groups(docs[:3], qrels).start.tolist() == expected.tie_groups(docs[:3], qrels).start.tolist()


def test_files_of_the_package_itself(tmp_path):
    """It sorts arrays by the width of their type, not by name."""
    from safetensors.numpy import save_file

    arrays = {"b": np.arange(5, dtype=np.int8), "a": np.arange(6.0).reshape(2, 3), "c": np.float16([1.5])}
    save_file(arrays, tmp_path / "saved.safetensors", metadata={"made": "by a test"})
    read = read_tensors(tmp_path / "saved.safetensors")
    assert read.keys() == arrays.keys() and all((read[key] == array).all() for key, array in arrays.items())


def test_files_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    tensors = {
        name: torch.arange(8.0).to(getattr(torch, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    }
    save_file(tensors, tmp_path / "torch.safetensors")
    for name, array in read_tensors(tmp_path / "torch.safetensors").items():
        assert array.dtype.name == name and array.astype(float).tolist() == list(range(8))


def test_torch_is_not_imported_and_little_memory_is_used(tmp_path):
    write(tmp_path / "large.safetensors", x=np.zeros((64, 2**18), ml_dtypes.bfloat16))  # 32 MiB
    code = (
        "import resource, sys; from tiewise.io.tensors import read_tensors; import safetensors, ml_dtypes\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "x = read_tensors(sys.argv[1])['x']; assert x[63, 5] == 0 and 'torch' not in sys.modules\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "large.safetensors")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16


@pytest.mark.parametrize("module", ["safetensors", "ml_dtypes"])
def test_a_missing_package_is_named(tmp_path, monkeypatch, module):
    write(tmp_path / "low.safetensors", x=np.ones(3, ml_dtypes.bfloat16))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tiewise\[precision\]'"):
        read_tensors(tmp_path / "low.safetensors")
