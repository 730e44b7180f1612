"""Ops on truth values, and divisions by constants, by the engines and by the reference evaluator."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py import reference

LANES = 16

KERNEL = """
gpu.module @m {{
  gpu.func @k(%x: memref<16xi32>, %y: memref<16xi32>, %z: memref<16xi64>, %out: memref<{count}x16xi64>) kernel {{
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<16xi32>, vector<16xi32>
    %b = vector.load %y[%c0] : memref<16xi32>, vector<16xi32>
    %q = vector.load %z[%c0] : memref<16xi64>, vector<16xi64>
    %sa = memref.load %x[%c0] : memref<16xi32>
    %sb = memref.load %y[%c0] : memref<16xi32>
    %m = arith.cmpi slt, %a, %b : vector<16xi32>
    %n = arith.cmpi ult, %a, %b : vector<16xi32>
    %g = arith.cmpi sge, %a, %b : vector<16xi32>
    %s = arith.cmpi slt, %sa, %sb : i32
    %u = arith.cmpi ult, %sa, %sb : i32
    %t = arith.constant dense<true> : vector<16xi1>
    %always = arith.ori %m, %g : vector<16xi1>
    %never = arith.andi %m, %g : vector<16xi1>
    {body}
    gpu.return
  }}
}}
"""

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
KINDS = ("add", "mul", "and", "or", "xor", "minui", "minsi", "maxui", "maxsi")

TRUTHS = [
    *(f"arith.{name} %m, %always : vector<16xi1>" for name in ("divsi", "divui", "remsi", "remui")),
    *(f"arith.{name} %m, %never : vector<16xi1>" for name in ("shli", "shrui", "shrsi")),
    *(f"arith.{name} %m, %n : vector<16xi1>" for name in ("addi", "subi", "muli", "xori")),
    *(f"arith.{name} %m, %n : vector<16xi1>" for name in ("minsi", "maxsi", "minui", "maxui")),
    *(f"arith.cmpi {predicate}, %m, %n : vector<16xi1>" for predicate in PREDICATES),
    *(f"math.{name} %m : vector<16xi1>" for name in ("ctpop", "ctlz", "cttz")),
    "arith.select %n, %m, %t : vector<16xi1>, vector<16xi1>",
]
"""Results that are vectors of truth values."""

SCALARS = [
    *(f"vector.reduction <{kind}>, %m : vector<16xi1> into i1" for kind in KINDS),
    *(f"vector.reduction <{kind}>, %m, %u : vector<16xi1> into i1" for kind in KINDS),
    *(f"vector.reduction <{kind}>, %t, %s : vector<16xi1> into i1" for kind in ("add", "and", "or")),
    *(f"arith.cmpi {predicate}, %s, %u : i1" for predicate in PREDICATES),
    *(f"arith.{name} %s, %u : i1" for name in ("addi", "muli", "maxsi", "maxui", "xori")),
    *(f"math.{name} %s : i1" for name in ("ctpop", "ctlz", "cttz")),
]
"""Results that are one truth value."""

DIVISIONS = [
    (f"arith.{name} {operand}, %d : {kind}", divisor, kind)
    for operand, kind in (("%a", "vector<16xi32>"), ("%q", "vector<16xi64>"), ("%sa", "i32"))
    for name in ("ceildivsi", "ceildivui", "floordivsi", "divsi", "divui", "remsi", "remui")
    for divisor in (1, 8, 1 << 30, 7, -8, -7)
]
"""Divisions by constants, and their types."""


def compared(forms: list[str], inputs: list[np.ndarray]) -> None:
    """Check the rows that pieces of text give, as values `%r0`, `%r1`, ... of vector<16xi64>."""
    stores = "\n".join(
        f"{text}\n%at{i} = arith.constant {i} : index\n"
        f"vector.store %r{i}, %out[%at{i}, %c0] : memref<{len(forms)}x16xi64>, vector<16xi64>"
        for i, text in enumerate(forms)
    )
    text = KERNEL.format(body=stores, count=len(forms))
    found, wanted = (np.zeros((len(forms), LANES), np.int64) for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(*inputs, found)
    reference.run(xegpu_py.parse(text), "k", [*inputs, wanted])
    for form, row, want in zip(forms, found, wanted):
        np.testing.assert_array_equal(row, want, form)


def numbers(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    ends = [0, 1, -1, 7, -8, 2**31 - 1, -(2**31), 2**31 - 7, -(2**31) + 1, 8]
    x = np.concatenate([ends, rng.integers(-(2**31), 2**31, 6)])
    y = rng.permutation(x)
    wide = rng.integers(-(2**63), 2**63, 12, np.int64) >> 5
    z = np.concatenate([[2**63 - 1, -(2**63), 2**63 - 8, -(2**63) + 1], wide])
    return [rng.permutation(x).astype(np.int32), y.astype(np.int32), rng.permutation(z)]


def test_truth_values() -> None:
    forms = []
    for i, op in enumerate([*TRUTHS, *SCALARS]):
        text = f"%v{i} = {op}\n"
        if i < len(TRUTHS):
            text += f"%r{i} = arith.extui %v{i} : vector<16xi1> to vector<16xi64>"
        else:
            text += f"%w{i} = arith.extui %v{i} : i1 to i64\n%r{i} = vector.broadcast %w{i} : i64 to vector<16xi64>"
        forms.append(text)
    compared(forms, numbers(0))


@pytest.mark.parametrize("part", range(2))
def test_divisions_by_constants(part: int) -> None:
    forms = []
    for i, (op, divisor, kind) in enumerate(DIVISIONS[part::2]):
        value = f"dense<{divisor}>" if kind.startswith("vector") else divisor
        text = f"%d{i} = arith.constant {value} : {kind}\n%v{i} = {op.replace('%d ', f'%d{i} ')}\n"
        if kind == "vector<16xi64>":
            text = text.replace(f"%v{i} =", f"%r{i} =")
        elif kind == "i32":
            text += f"%w{i} = arith.extsi %v{i} : i32 to i64\n%r{i} = vector.broadcast %w{i} : i64 to vector<16xi64>"
        else:
            text += f"%r{i} = arith.extsi %v{i} : vector<16xi32> to vector<16xi64>"
        forms.append(text)
    compared(forms, numbers(part))
