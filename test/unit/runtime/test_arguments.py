"""Arguments written as words."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xegpu_py.runtime import host_arrays
from xegpu_py.runtime.device_memory import zeros_aligned
from xegpu_py.runtime.host_arrays import DTYPES, overlapping, parse_argument, span_of


@pytest.mark.parametrize("name", DTYPES)
def test_types(name: str) -> None:
    for kind in ("randn", "rand", "small", "bits", "arange", "zeros", "ones"):
        found = parse_argument(f"{kind}:{name}:2x3")
        assert (found.dtype, found.shape) == (DTYPES[name], (2, 3))
    value = 1 if name.endswith("i2") else 5
    number = parse_argument(f"{name}:{value}")
    assert (number.dtype, number) == (DTYPES[name], value)


def test_values() -> None:
    assert parse_argument("arange:i32:2x3").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert parse_argument("zeros:f32:3").tolist() == [0, 0, 0]
    assert parse_argument("ones:bf16:2").tolist() == [1, 1]
    assert parse_argument("full:f16:2:1.5").tolist() == [1.5, 1.5]
    assert parse_argument("full:ui8:2:0xff").tolist() == [255, 255]
    assert parse_argument("i32:-5") == -5
    assert parse_argument("f32:1e3") == 1000
    assert np.isnan(parse_argument("f32:nan"))
    assert parse_argument("ui64:18446744073709551615") == (1 << 64) - 1


def test_alignment() -> None:
    for word in ("randn:f32:7", "zeros:bf16:3x5", "ones:i8:1"):
        assert parse_argument(word).ctypes.data % 64 == 0
    made = zeros_aligned((3, 5), np.float16)
    assert (made.shape, made.dtype, made.any(), made.flags.c_contiguous) == ((3, 5), np.float16, False, True)
    assert zeros_aligned(4).tolist() == [0, 0, 0, 0]


def test_random_numbers() -> None:
    normal = parse_argument("randn:f64:200x200:seed=7")
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    uniform = parse_argument("rand:f32:200x200:seed=7")
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02
    assert set(parse_argument("rand:i8:5000")) == set(range(-128, 128))
    assert parse_argument("rand:ui64:500").max() > 1 << 63


def test_seeds() -> None:
    same = [parse_argument(f"randn:f32:8{seed}").tolist() for seed in ("", ":seed=0", ":seed=1")]
    assert same[0] == same[1] != same[2]


def test_files(tmp_path: Path) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", data)
    np.testing.assert_array_equal(parse_argument(str(tmp_path / "a.npy")), data)
    small = data.astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "b.npy", small)
    found = parse_argument(f"bf16:{tmp_path / 'b.npy'}")
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found, small)
    with pytest.raises(ValueError, match="the file's elements are float32, not bf16"):
        parse_argument(f"bf16:{tmp_path / 'a.npy'}")
    with pytest.raises(FileNotFoundError):
        parse_argument(str(tmp_path / "missing.npy"))


def header(text: str) -> bytes:
    """A file with this header, and no data."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


SHAPED = "{{'descr': '<f4', 'fortran_order': False, 'shape': {}}}\n".format


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no numpy file",
        b"\x93NUMPY\x01\x00\x76\x00{'descr'",
        b"PK\x03\x04",
        *map(header, ("{" * 100, "{[]: 1}", "(" * 9000, "{'descr': '<f4', 'f,ortran_order': False, 'shape': (2,}")),
        *map(header, map(SHAPED, ("(1 << 40,)", "(1099511627776,)", f"({1 << 64},)", "(True,)", "(-1,)", "(2,)"))),
    ],
)
@pytest.mark.filterwarnings("error")
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"argument '{path}': the file is not an array in numpy's format")):
        parse_argument(str(path))


def test_files_of_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="not an array in numpy's format"):
        parse_argument(str(path))


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    os.mkfifo(path)
    for text in (str(path), f"bf16:{path}"):
        with pytest.raises(ValueError, match=re.escape(f"argument '{text}': it is not a regular file")):
            parse_argument(text)


def test_memory_that_is_missing_is_an_error_of_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("Unable to allocate 3.73 GiB")

    monkeypatch.setattr(host_arrays, "zeros_aligned", fail)
    with pytest.raises(ValueError, match=re.escape("argument 'zeros:f32:64' does not fit the memory: Unable to")):
        parse_argument("zeros:f32:64")


def test_small_numbers_are_exact_in_every_type() -> None:
    assert set(parse_argument("small:f8E4M3FN:500").astype(int)) == set(range(-4, 5))
    assert set(parse_argument("small:ui8:500")) == set(range(9))


def test_bits_have_special_values() -> None:
    numbers = parse_argument("bits:f16:2000:seed=3")
    assert np.isnan(numbers).any() and np.isinf(numbers).any() and (np.abs(numbers) == 2.0**-24).any()
    assert {0x7E00, 0xFC01, 0x7E01} <= set(numbers.view(np.uint16).tolist())
    assert {-128, -127, 126, 127} <= set(parse_argument("bits:i8:500").tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "argument '' is neither a .npy file nor begins with one of randn, "),
        ("5", "argument '5' is neither a .npy file"),
        ("a.txt", "neither a .npy file"),
        ("i32:", "argument 'i32:': '' is not a number of type int32"),
        ("i32:1.5", "'1.5' is not a number of type int32"),
        ("i8:128", "'128' is not a number of type int8"),
        ("ui8:-1", "'-1' is not a number of type uint8"),
        ("f32:x", "'x' is not a number of type float32"),
        ("zeros", "argument 'zeros': expected zeros:TYPE:SHAPE, such as zeros:f32:64x64"),
        ("zeros:f32", "expected zeros:TYPE:SHAPE"),
        ("zeros:f32:4x", "expected zeros:TYPE:SHAPE"),
        ("zeros:f32:-4", "expected zeros:TYPE:SHAPE"),
        ("zeros:f33:4", "argument 'zeros:f33:4': unknown type 'f33'; there are i8, "),
        ("zeros:f32:4:1", "unexpected '1' after the shape"),
        ("arange:f32:4:seed=1", "unexpected 'seed=1' after the shape"),
        ("randn:f32:4:7", "expected nothing or seed=N after the shape"),
        ("randn:f32:4:seed=-7", "expected nothing or seed=N after the shape"),
        ("full:f32:4", "expected full:TYPE:SHAPE:VALUE"),
        ("full:i8:4:300", "'300' is not a number of type int8"),
        ("zeros:f64:999999999x999999999", "cannot allocate 7999999984000000008 bytes"),
        ("zeros:f64:999999999x99", "cannot allocate 791999999208 bytes"),
    ],
)
def test_words_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_argument(text)


def test_elements_of_less_than_a_byte():
    every = {"i4": range(-8, 8), "ui4": range(16), "i2": range(-2, 2), "ui2": range(4)}
    for name, numbers in every.items():
        for kind in ("rand", "bits"):
            assert set(parse_argument(f"{kind}:{name}:500").astype(int)) == set(numbers)
        small = set(parse_argument(f"small:{name}:500").astype(int))
        assert small == set(numbers) & set(range(-4 if name[0] == "i" else 0, 5 if name[0] == "i" else 9))
    assert parse_argument("full:i4:3:-8").astype(int).tolist() == [-8] * 3
    with pytest.raises(ValueError, match="'8' is not a number of type int4"):
        parse_argument("full:i4:3:8")


@pytest.mark.parametrize(
    ("shape", "strides", "reach"),
    [
        ((4,), (4,), 16),
        ((4, 3), (16, 4), 60),
        ((4, 3), (0, 8), 20),
        ((0, 3), (16, 4), 0),
        ((3, 0), (-16, 4), 0),
        ((1,), (-4,), "has a negative stride"),
        ((2,), (-4,), "has a negative stride"),
        ((2, 2), (-16, 4), "has a negative stride"),
        ((2,), (1 << 62,), (1 << 62) + 4),
        ((3,), (1 << 62,), "reach beyond the host's memory"),
        ((2, 2), (1 << 62, 1 << 62), "reach beyond the host's memory"),
    ],
)
def test_the_bytes_that_an_array_spans(shape: tuple[int, ...], strides: tuple[int, ...], reach: Any) -> None:
    memory = np.zeros(64, np.float32)
    array = np.lib.stride_tricks.as_strided(memory, shape, strides)
    if isinstance(reach, str):
        with pytest.raises(ValueError, match=reach):
            span_of(array)
    else:
        start, end = span_of(array)
        assert (start, end - start) == (array.ctypes.data, reach)


def test_spans_that_only_touch_do_not_overlap() -> None:
    spans = [(0, 16), (16, 32), (8, 12), (40, 44), (31, 41), (44, 44)]
    assert overlapping(spans) == [[0, 2], [1, 3, 4], [5]]
