"""Random kernels of OpenCL C, run by both engines and by another implementation of OpenCL for CPUs.

    python test/unit/opencl/random_kernels.py [COUNT] [SEED]

prints each kernel whose results differ, with its seed. Needs ocloc, and an implementation that pyopencl finds; see
`recordings`. Kernels have integers of all widths, branches and loops that depend on the work item, private arrays and
local memory, and no behaviour that C leaves undefined.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import numpy as np
from recordings import Case, Peer, devices, vendors

from xegpu_py import opencl
from xegpu_py.opencl.compiler import DEVICES

TYPES = ("uchar", "ushort", "uint", "ulong")
SIGNED = {"uchar": "char", "ushort": "short", "uint": "int", "ulong": "long"}
EACH = 20
"""Kernels of a file."""

ITEMS, BLOCK = 100, 50


class Writer:
    """Writes the text of a kernel."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._variables = {f"v{n}": self._random.choice(TYPES) for n in range(5)}
        self._loops = 0

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a type."""
        r = self._random
        if depth == 0 or r.random() < 0.15:
            name = r.choice([*self._variables, "x", "i", f"{r.choice((0, 1, 3, 127, 255, 40000, 2**31))}u"])
            return f"({kind})({name})"
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        bits = {"uchar": 7, "ushort": 15, "uint": 31, "ulong": 63}[kind]
        other = r.choice(TYPES)
        # Products of ushort are of int, and may overflow.
        signs = "+-&|^" if kind == "ushort" else "+-*&|^"
        calls = ("rotate", "mul_hi", "min", "max", "abs_diff", "add_sat", "sub_sat", "hadd")
        forms = [
            *(f"({kind})({a} {sign} {b})" for sign in signs),
            f"({kind})({a} / ({kind})({b} | 1))", f"({kind})({a} % ({kind})({b} | 1))",
            f"({kind})({a} << ({b} & {bits}))" if kind in ("uint", "ulong") else f"({kind})(~{a})",
            f"({kind})({a} >> ({b} & {bits}))",
            f"({kind})(as_{SIGNED[kind]}({a}) >> ({b} & {bits}))",
            *(f"{name}({a}, {b})" for name in calls),
            *(f"{name}({a})" for name in ("clz", "popcount")),
            f"({kind})({a} < {b} ? {a} : {b})",
            f"({kind})(as_{SIGNED[kind]}({a}) < as_{SIGNED[kind]}({b}))",
            f"({kind})({self.value(other, depth - 1)})",
            f"({kind})(held[{self.value('uint', 0)} & 7])",
            f"bitselect({a}, {b}, {a})",
        ]  # fmt: skip
        return r.choice(forms)

    def statements(self, depth: int) -> Iterator[str]:
        """Some statements."""
        r = self._random
        for _ in range(r.randint(1, 3)):
            name = r.choice(list(self._variables))
            form = r.random()
            inner = "\n".join(self.statements(depth - 1)) if depth and form < 0.4 else ""
            if depth and form < 0.15:
                self._loops += 1
                n = f"n{self._loops}"
                stop = f"if ({self.value('uint', 1)} % 11 == 3) {r.choice(('break', 'continue'))};"
                yield f"for (uint {n} = 0; {n} < ({self.value('uint', 1)} & 7); {n}++) {{\n{stop}\n{inner}\n}}"
            elif depth and form < 0.3:
                other = "\n".join(self.statements(depth - 1))
                yield f"if ({self.value('uint', 2)} & 1) {{\n{inner}\n}} else {{\n{other}\n}}"
            elif depth and form < 0.4:
                cases = f"case 0: {{\n{inner}\n}}\ncase 2: {name} += 7; break;"
                yield f"switch ({self.value('uint', 1)} & 3) {{\n{cases}\n}}"
            elif form < 0.5:
                yield f"held[{self.value('uint', 1)} & 7] = {self.value('uint', 2)};"
            else:
                yield f"{name} = {self.value(self._variables[name])};"

    def kernel(self, name: str) -> str:
        """The kernel."""
        declared = "\n".join(f"{kind} {v} = x >> {n};" for n, (v, kind) in enumerate(self._variables.items()))
        body = ["\n".join(self.statements(2)) for _ in range(2)]
        total = " ^ ".join(f"((ulong){v} << {n})" for n, v in enumerate(self._variables))
        return (
            f"kernel void {name}(global const ulong *in, global ulong *out) {{\n"
            f"local uint shared[{BLOCK}];\nuint i = get_global_id(0), l = get_local_id(0);\nulong x = in[i];\n"
            f"uint held[8] = {{1, 2, 3, 4, 5, 6, 7, (uint)x}};\n{declared}\n{body[0]}\n"
            f"shared[l] = v0 + held[i & 7];\nbarrier(CLK_LOCAL_MEM_FENCE);\nv1 += shared[(l * 7 + 3) % {BLOCK}];\n"
            f"{body[1]}\nout[i] = {total} ^ held[3];\n}}\n"
        )


def main(count: int, seed: int) -> int:
    """Run so many kernels from a seed on; the number of those whose results differ."""
    vendors()
    import pyopencl as cl

    peer, differing = Peer(cl, devices()[0]), 0
    given = np.random.default_rng(seed).integers(0, 2**64, ITEMS, np.uint64)
    for start in range(seed, seed + count, EACH):
        seeds = range(start, min(start + EACH, seed + count))
        source = "".join(Writer(n).kernel(f"k{n}") for n in seeds)
        target = list(DEVICES)[start // EACH % len(DEVICES)]
        program = opencl.compile(source, target=target, engine="both")
        if why := peer.build(source):
            print(f"seeds {start}...: {why}", file=sys.stderr)
            continue
        for n in seeds:
            case = Case("", f"k{n}", (), (ITEMS,), (BLOCK,), 0, 0)
            found = np.zeros(ITEMS, np.uint64)
            program.kernels[case.kernel][ITEMS, BLOCK](given, found)
            wanted = peer.run(source, case, (True, True), [given.copy(), np.zeros(ITEMS, np.uint64)])[1]
            if why := case.differs(found, wanted):
                differing += 1
                print(f"seed {n}, {target}: {why}", file=sys.stderr)
    print(f"{count} kernels, {differing} differ from {peer.name}")
    return differing


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [200, 0][len(numbers) :])) > 0)
