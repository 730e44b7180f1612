"""Every public function called with each argument of a wrong kind: an error is raised on purpose, by a sentence."""

from __future__ import annotations

import ast
import inspect
import itertools
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xegpu_py
from xegpu_py import numerics

PACKAGE = Path(xegpu_py.__file__).parents[1]

KERNEL = """gpu.module @m {
  gpu.func @fill(%y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : i32
    memref.store %c7, %y[%c0] : memref<?xi32>
    gpu.return } }"""

PROGRAM = """func.func @main() { return }"""


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


HALF = {"a": ones(8, 16, dtype=np.float16), "b": ones(16, 16, dtype=np.float16)}
TYPES = {"W": "hf", "A": "hf", "dst_type": "f", "src0_type": "f"}
PACKED = {"src1": numerics.pack_b(HALF["b"], "hf"), "src2": numerics.pack_a(HALF["a"], "hf")}
SYSTOLIC = {"SD": 8, "RC": 8, "exec_size": 16}
ONE = {"x": ones(4), "fmt": "f"}
MATH = ["cos", "exp", "inv", "log", "rsqrt", "sigm", "sin", "sqrt", "tanh"]
ROUNDINGS = ["round_down", "round_even", "round_up", "round_zero"]
SCALED = {**HALF, "a": ones(8, 32, dtype=np.float16), "b": ones(32, 16, dtype=np.float16)}

CALLS: dict[str, dict[str, Any]] = {
    **dict.fromkeys([*MATH, *ROUNDINGS], ONE),
    "bdpas": {"acc": None, **PACKED, "src3": None, "src4": None, **TYPES, "model": "fma", "flushed": ()},
    "convert": {"values": ones(4), "src": "f", "dst": "hf", "saturate": False},
    "directed": {"name": "add", "operands": (ones(4), ones(4)), "fmt": "f", "direction": "up"},
    "div": {"a": ones(4), "b": ones(4), "fmt": "f"},
    "dpas": {"acc": None, **PACKED, **TYPES, **SYSTOLIC, "model": "fma", "flushed": ()},
    "fcvt": {"src0": ones(4, dtype=np.float16), "dst_type": "bf8"},
    "fma": {"a": ones(4), "b": ones(4), "c": ones(4), "fmt": "f"},
    "maximum_number": {"a": ones(4), "b": ones(4)},
    "minimum_number": {"a": ones(4), "b": ones(4)},
    "multiply": {"acc": None, **HALF, **TYPES, "model": "fma"},
    "multiply_scaled": {"acc": None, **SCALED, "scale_a": None, "scale_b": None, **TYPES, "model": "fma"},
    "pack_a": {"matrix": HALF["a"], "precision": "hf"},
    "pack_b": {"matrix": HALF["b"], "precision": "hf"},
    "pack_c": {"matrix": ones(8, 16), "dtype": "f"},
    "pack_scales": {"scales": ones(2, 8, dtype=np.uint8)},
    "quantize": {"values": ones(4, 32), "dst": "e2m1"},
    "srnd": {"src0": ones(4), "src1": ones(4, dtype=np.uint32), "dst_type": "hf"},
    "truncate": {"values": ones(4), "src": "f", "dst": "e2m1"},
    "unpack_a": {"data": PACKED["src2"], "M": 8, "K": 16, "precision": "hf"},
    "unpack_b": {"data": PACKED["src1"], "K": 16, "N": 16, "precision": "hf"},
    "unpack_c": {"data": numerics.pack_c(ones(8, 16), "f"), "M": 8, "N": 16, "dtype": "f"},
    "Systolic": {"group": "product", "order": "up", "join": "first", "rounding": "even", "guard": 3, "flushed": ()},
    "autotune": {"configs": [xegpu_py.Config({"N": 16})], "key": [], "objective": "instructions"},
    "bisect": {"module": KERNEL, "kernel": "fill", "arguments": (ones(4, dtype=np.int32),), "grid": 1, "block": 1},
    "cdiv": {"a": 5, "b": 2},
    "compile": {"module": KERNEL, "kernel": "fill", "target": "pvc", "engine": "jit", "check": ()},
    "function": {"function": ones},
    "heuristics": {"rules": {"N": lambda arguments: 16}},
    "import_upstream": {"text_or_path": KERNEL, "level": None, "via": None, "name": "x", "verify": True},
    "jit": {"function": lambda Y: None},
    "load_program": {"program": PROGRAM, "import_upstream": False, "via": None, "seed": 0, "allow_native": False},
    "next_power_of_2": {"n": 5},
    "parse": {"text_or_path": KERNEL, "name": "x", "verify": True},
    "register_pass": {"name": "no-such-pass"},
    "run_pipeline": {"module": xegpu_py.parse(KERNEL), "pipeline": "builtin.module(cse)", "verify_each": True},
    "zeros_aligned": {"shape": 4, "dtype": np.float32},
    "PointerTable": {"arrays": [ones(4)]},
    "Space": {"parameters": {"N": [16]}, "constraints": (), "constants": None},
    "Config": {"values": {"N": 16}, "options": {}, "num_warps": 1},
    "Context": {"irdl_dialects": None},
}

WRONG = [None, object(), True, 5, -1, 0, 2.5, float("nan"), "x", "", b"x", [], ["x", 5], {"x": object()}, len]
WRONG += [Path("/"), 1 << 70, np.zeros((3, 5), complex), np.zeros(0, np.float32), np.array("x"), np.array([None])]

CLASSES = {"Config", "Context", "PointerTable", "Space", "Systolic"}
"""Classes that users make. The others are made by functions, or are checked where they are used."""

ELSEWHERE = {"launch_on", "portability", "tune"}
"""Functions whose valid call takes seconds; their parameters are checked by `test_argument_types.py`."""


@cache
def raises(file: str) -> list[range]:
    """The lines of a file's statements that raise."""
    statements = (s for s in ast.walk(ast.parse(Path(file).read_text())) if isinstance(s, ast.Raise))
    return [range(s.lineno, (s.end_lineno or s.lineno) + 1) for s in statements]


def door(name: str) -> Any:
    return getattr(numerics, name, None) or getattr(xegpu_py, name)


def is_deliberate(error: Exception) -> bool:
    """Whether a statement of the package raised an error that says a sentence; or the system says one about a file."""
    if isinstance(error, OSError):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = Path(last.filename).is_relative_to(PACKAGE) and "site-packages" not in last.filename
    return own and any(last.lineno in lines for lines in raises(last.filename)) and " " in str(error)


def test_every_public_function_has_a_valid_call():
    names = {*numerics.__all__, *xegpu_py.__all__}
    functions = {name for name in names if inspect.isfunction(door(name))}
    assert functions - ELSEWHERE | CLASSES == set(CALLS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_end_in_a_sentence(name):
    valid = CALLS[name]
    door(name)(**valid)
    internal = []
    for parameter, value in itertools.product(valid, WRONG):
        try:
            door(name)(**{**valid, parameter: value})
        except Exception as error:
            if not is_deliberate(error):
                internal.append(f"{parameter} = {value!r}: {type(error).__name__}: {error}")
    assert not internal


def test_values_that_would_be_misread_are_refused():
    for call in (
        lambda: numerics.multiply(None, HALF["a"].astype(np.float32), HALF["b"], **TYPES),
        lambda: numerics.multiply(None, HALF["a"], HALF["b"].astype(np.int16), **TYPES),
        lambda: numerics.multiply_scaled(None, SCALED["a"].astype(np.float32), SCALED["b"], None, None, **TYPES),
        lambda: numerics.convert(ones(4), "f", "hf", saturate="no"),
        lambda: numerics.directed("add", (ones(4), ones(4)), "f", "upward"),
        lambda: numerics.directed("add", (ones(4), ones(4), ones(4)), "f", "up"),
        lambda: numerics.unpack_b(PACKED["src1"], 16, 17, "hf"),
        lambda: numerics.unpack_a(PACKED["src2"], -1, 16, "hf"),
        lambda: numerics.Systolic(group="stages"),
        lambda: numerics.Systolic(flushed=("bf16",)),
        lambda: xegpu_py.zeros_aligned(-4, np.float32),
        lambda: xegpu_py.compile(KERNEL)(ones(4, dtype=np.int32), grid=True),
    ):
        with pytest.raises((TypeError, ValueError), match=r"^'\w[\w' ]*' must "):
            call()


def test_numbers_beyond_the_range_of_a_parameter_are_refused():
    text = KERNEL.replace("%y: memref<?xi32>", "%y: memref<?xf32>, %f: f32").replace("%c7, %y", "%f, %y")
    kernel = xegpu_py.compile(text.replace("memref<?xi32>", "memref<?xf32>"))
    y = np.zeros(1, np.float32)
    for number in (1e300, 10**400, np.float64(-1e39)):
        with pytest.raises(ValueError, match="must be a number of type f in its range, but got "):
            kernel(y, number)
    for number in (np.inf, 3.4e38, 1e-300):
        kernel(y, number)
        assert y[0] == np.float32(number)
