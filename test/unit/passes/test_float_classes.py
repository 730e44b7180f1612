"""`math.isnan`, `math.isinf` and `math.isfinite`: of every 8- and 16-bit float, and of wider ones where they change."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py

BODY = """gpu.module @m { gpu.func @k(%in: memref<?xT>, %out: memref<?x3x64xi8>) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %at = arith.muli %block, %c64 : index
    %x = vector.load %in[%at] : memref<?xT>, vector<64xT>
    EACH
    gpu.return
  }
}"""
EACH = "".join(
    f"""%i{i} = arith.constant {i} : index
    %m{i} = math.{name} %x : vector<64xT>
    %b{i} = arith.extui %m{i} : vector<64xi1> to vector<64xi8>
    vector.store %b{i}, %out[%block, %i{i}, %c0] : memref<?x3x64xi8>, vector<64xi8>
    """
    for i, name in enumerate(("isnan", "isinf", "isfinite"))
)
TYPES = {
    "f8E5M2": (ml_dtypes.float8_e5m2, 5, 2),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 4, 3),
    "f16": (np.float16, 5, 10),
    "bf16": (ml_dtypes.bfloat16, 8, 7),
    "f32": (np.float32, 8, 23),
    "f64": (np.float64, 11, 52),
}


@pytest.mark.parametrize("name", TYPES)
def test_classes(name):
    dtype, exponent, mantissa = TYPES[name]
    bits = 1 + exponent + mantissa
    if bits <= 16:
        codes = list(range(1 << bits))
    else:
        top = ((1 << exponent) - 1) << mantissa
        near = [c + d for c in (0, 1 << mantissa, top) for d in range(-4, 5) if c + d >= 0]
        near += [top + (1 << mantissa) - 1, top + (1 << mantissa - 1), 5, top - (1 << mantissa), 0]
        codes = [c | s << bits - 1 for c in near for s in (0, 1)]
        codes += [0] * (-len(codes) % 64)
    largest, fraction = (1 << exponent) - 1, (1 << mantissa) - 1
    expected = []
    for code in codes:
        e, m = code >> mantissa & largest, code & fraction
        # f8E4M3FN has one NaN of each sign and no infinities.
        nan = e == largest and (m == fraction if name == "f8E4M3FN" else m != 0)
        infinite = e == largest and m == 0 and name != "f8E4M3FN"
        expected.append((nan, infinite, not nan and not infinite))
    given = np.array(codes, f"u{bits // 8}").view(dtype)
    wanted = np.array(expected, np.int8).reshape(-1, 64, 3).transpose(0, 2, 1)
    text = BODY.replace("EACH", EACH).replace("xT>", f"x{name}>")
    for engine in ("reference", "both"):
        out = np.zeros_like(wanted, order="C")
        xegpu_py.compile(text, engine=engine, cache="off")(given, out, grid=len(codes) // 64, block=1)
        np.testing.assert_array_equal(out, wanted)
