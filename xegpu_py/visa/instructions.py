"""The table of instructions."""

from xegpu_py.visa.arithmetic import ARITHMETIC
from xegpu_py.visa.control import CONTROL
from xegpu_py.visa.matrix import MATRIX
from xegpu_py.visa.memory import ATOMICS, MEMORY

INSTRUCTIONS = {spec.name: spec for spec in (*MATRIX, *ARITHMETIC, *MEMORY, *CONTROL)}
"""The instructions by vISA's names."""

__all__ = ["ATOMICS", "INSTRUCTIONS"]
