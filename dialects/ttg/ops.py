"""The op of TritonGPU's dialect that occurs in TTIR."""

import re
from typing import Annotated

from xegpu_py.ir.codecs import Cursor, IntCodec, ParserScope
from xegpu_py.ir.definition import Attribute, Dialect
from xegpu_py.ir.operation import Operation


class Ttg(Dialect, name="ttg"):
    """TritonGPU's IR, of which TTIR has just the barrier. Layouts of threads are not read."""


SPACES = {"local": 1, "global_read": 2, "global_write": 4, "tensor_read": 8, "tensor_write": 16}
NONE, ALL = 0, 31


class AddressSpacesCodec(IntCodec):
    """A set of address spaces, such as `local|global_read`, which MLIR holds as a 32-bit integer."""

    summary = f"all, none, or some of {', '.join(SPACES)}"
    _WORDS = re.compile(r"\w+(?:\s*\|\s*\w+)*")

    def read(self, cursor: Cursor, scope: ParserScope) -> int:
        start = cursor.skip()
        m = cursor.match(self._WORDS)
        words = [word.strip() for word in m[0].split("|")] if m else []
        spaces = {**SPACES, "all": ALL, "none": NONE}
        if not words or not spaces.keys() >= set(words):
            cursor.pos = start
            raise cursor.expected(self.summary)
        bits = 0
        for word in words:
            bits |= spaces[word]
        return bits

    def encode(self, value: int) -> str:
        return f"{value} : i32"

    def write(self, value: int) -> str:
        if value in (NONE, ALL):
            return "all" if value else "none"
        return "|".join(word for word, bit in SPACES.items() if value & bit)


class BarrierOp(Operation, dialect=Ttg, name="barrier"):
    """Waits for all threads of the program, whose accesses to these address spaces are seen by all after it.

    ttg.barrier local|global_read
    """

    addrSpace: Attribute[Annotated[int, AddressSpacesCodec()]]

    effects = frozenset(["sync", "read", "write"])
    assembly_format = "$addrSpace attr-dict"
