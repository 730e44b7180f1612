"""Number formats and golden arithmetic on bit patterns, in numpy."""

from xegpu_py.numerics.block_scaled import bdpas, multiply_scaled, pack_scales, quantize, truncate
from xegpu_py.numerics.convert import convert
from xegpu_py.numerics.dpas import dpas, multiply
from xegpu_py.numerics.elementary import (
    cos,
    div,
    exp,
    inv,
    log,
    maximum_number,
    minimum_number,
    round_down,
    round_even,
    round_up,
    round_zero,
    rsqrt,
    sin,
    sqrt,
)
from xegpu_py.numerics.fcvt import fcvt
from xegpu_py.numerics.fma import fma
from xegpu_py.numerics.pack import pack_a, pack_b, pack_c, unpack_a, unpack_b, unpack_c
from xegpu_py.numerics.srnd import srnd

__all__ = [
    "bdpas",
    "convert",
    "cos",
    "div",
    "dpas",
    "exp",
    "fcvt",
    "fma",
    "inv",
    "log",
    "maximum_number",
    "minimum_number",
    "multiply",
    "multiply_scaled",
    "pack_a",
    "pack_b",
    "pack_c",
    "pack_scales",
    "quantize",
    "round_down",
    "round_even",
    "round_up",
    "round_zero",
    "rsqrt",
    "sin",
    "sqrt",
    "srnd",
    "truncate",
    "unpack_a",
    "unpack_b",
    "unpack_c",
]
