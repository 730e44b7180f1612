"""The op of TritonGPU's dialect that occurs in TTIR."""

from xegpu_py.dialects.ttg.ops import Ttg

DIALECT = Ttg

__getattr__ = Ttg.function
