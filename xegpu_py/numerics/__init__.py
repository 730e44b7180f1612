"""Number formats and golden arithmetic on bit patterns, in numpy."""

from xegpu_py.numerics.convert import convert
from xegpu_py.numerics.dpas import dpas
from xegpu_py.numerics.fcvt import fcvt
from xegpu_py.numerics.pack import pack_a, pack_b, pack_c, unpack_a, unpack_b, unpack_c
from xegpu_py.numerics.srnd import srnd

__all__ = [
    "convert",
    "dpas",
    "fcvt",
    "pack_a",
    "pack_b",
    "pack_c",
    "srnd",
    "unpack_a",
    "unpack_b",
    "unpack_c",
]
