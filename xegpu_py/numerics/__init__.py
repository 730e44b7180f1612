"""Number formats and exact arithmetic on bit patterns, in numpy."""

from types import FunctionType

from xegpu_py.argument_types import checked
from xegpu_py.numerics.block_scaled import bdpas, multiply_scaled, pack_scales, quantize, truncate
from xegpu_py.numerics.directed import directed
from xegpu_py.numerics.dpas import dpas, multiply, pack_a, pack_b, pack_c, unpack_a, unpack_b, unpack_c
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
    sigm,
    sin,
    sqrt,
    tanh,
)
from xegpu_py.numerics.rounding import convert, fcvt, fma, srnd
from xegpu_py.numerics.systolic import Systolic

__all__ = [
    "Systolic",
    "bdpas",
    "convert",
    "cos",
    "directed",
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
    "sigm",
    "sin",
    "sqrt",
    "srnd",
    "tanh",
    "truncate",
    "unpack_a",
    "unpack_b",
    "unpack_c",
]

for _name in __all__:
    if isinstance(_function := globals()[_name], FunctionType):
        globals()[_name] = _door = checked(_function, leave_out=["model"])
        _door.__module__ = __name__
