"""Random kernels of OpenCL C, compared with what another implementation of OpenCL for CPUs computes.

    python test/extensions/opencl/random_kernels.py [COUNT] [SEED]

prints each kernel whose results differ, with its seed; every tenth kernel runs on both engines, the others on the
interpreter.

    python test/extensions/opencl/random_kernels.py --record

writes `recorded/random`, digests of the results for `test_random_kernels.py`. Both need ocloc, and an
implementation that pyopencl finds; see `recordings`.

Kernels have integers of all widths, floats, vectors, conversions, branches and loops that depend on the work item,
functions, private arrays, local memory and atomics, and no behaviour that C leaves undefined.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from recordings import FOLDER, Array, Case, Peer, devices, vendors

from xegpu_py import opencl
from xegpu_py.runtime.options import Options
from xegpu_py.target import TARGETS
from xegpu_py.visa.finalizer import DEVICES

BITS = {"uchar": 8, "ushort": 16, "uint": 32, "ulong": 64}
SIGNED = {"uchar": "char", "ushort": "short", "uint": "int", "ulong": "long"}
FLOATS = {"float": ("uint", 32), "double": ("ulong", 64)}
EACH = 50
"""Kernels of a file."""

ITEMS, BLOCK = 100, 50
OPTIONS = "-cl-fp32-correctly-rounded-divide-sqrt"
ATOMICS = ("and", "or", "min", "max", "add", "sub", "xor")
BOTH = 10
"""Each of so many kernels runs on both engines."""

RECORDED = FOLDER / "random"
COUNT = 200
"""Kernels that are recorded."""


class Recorded(msgspec.Struct):
    """Digests of the text of all kernels that are recorded, and of the results of each."""

    source: bytes
    results: list[bytes]


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:8]


class Writer:
    """Writes the text of a kernel.

    Divisions of 64 bits are rare: IGC makes hundreds of instructions of one.
    """

    def __init__(self, seed: int, target: str) -> None:
        self._random = random.Random(seed)
        self._reals = reals(target)
        kinds = [*BITS, "uint", "uint", "float", "float", self._reals[-1]]
        self._variables = {f"v{n}": self._random.choice(kinds) for n in range(3)}
        # Whether it has a private array, and local memory.
        self._private, self._local = (self._random.random() < 0.25 for _ in range(2))
        self._loops = 0

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a scalar type."""
        r = self._random
        if depth == 0 or r.random() < 0.15:
            name = r.choice([v for v, own in self._variables.items() if own == kind] or ["x"])
            if kind in BITS:
                name = r.choice((name, "x", "i", f"{r.choice((0, 1, 3, 127, 255, 40000, 2**31))}u"))
            elif name == "x" or r.random() < 0.3:
                name = r.choice(("x", "(long)x", "0.5f", "-3.0f", "1e-39f", "16777217.0f", "i"))
            return f"({kind})({name})"
        return r.choice(list(self._floats(kind, depth) if kind in FLOATS else self._integers(kind, depth)))

    def _floats(self, kind: str, depth: int) -> Iterator[str]:
        r = self._random
        a, b, c = (self.value(kind, depth - 1) for _ in range(3))
        yield from (f"({a} {sign} {b})" for sign in "+-*")
        yield f"fma({a}, {b}, {c})"
        yield f"({a} < {b} ? {b} : {c})"
        yield f"fabs({a})"
        yield f"copysign({a}, known({b}))"
        other = r.choice([*BITS, *BITS, *self._reals])
        number = self.value(other, depth - 1)
        if other in BITS and r.random() < 0.5:
            number = f"as_{SIGNED[other]}({number})"
        yield f"convert_{kind}{r.choice(('', '_rte', '_rtz', '_rtp', '_rtn'))}({number})"
        if kind == "float":
            yield f"({a} / {b})"
            yield f"sqrt({a})"
            yield from (f"{name}({a})" for name in ("floor", "trunc", "rint"))
            yield f"as_float({self.value('uint', depth - 1)} & 0xbfffffffu)"

    def _integers(self, kind: str, depth: int) -> Iterator[str]:
        r = self._random
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        bits, signed, other = BITS[kind], SIGNED[kind], r.choice(list(BITS))
        # Products of ushort are of int, and may overflow.
        yield from (f"({kind})({a} {sign} {b})" for sign in ("+-&|^" if kind == "ushort" else "+-*&|^"))
        if bits < 64 or r.random() < 0.02:
            yield from (f"({kind})({a} {sign} ({kind})({b} | 1))" for sign in "/%")
        yield f"({kind})({a} << ({b} & {bits - 1}))" if bits >= 32 else f"({kind})(~{a})"
        yield f"({kind})({a} >> ({b} & {bits - 1}))"
        yield f"({kind})(as_{signed}({a}) >> ({b} & {bits - 1}))"
        yield from (f"{n}({a}, {b})" for n in ("rotate", "min", "max", "abs_diff", "add_sat", "sub_sat"))
        if kind != "ushort":
            # IGC 2.40 takes products of ushort to be below 2^31.
            yield f"mul_hi({a}, {b})"
        yield from (
            f"as_{kind}({n}(as_{signed}({a}), as_{signed}({b})))" for n in ("max", "add_sat", "sub_sat", "hadd")
        )
        yield from (f"({kind})({name}({a}))" for name in ("clz", "popcount"))
        yield f"({kind})({a} < {b} ? {a} : {b})"
        yield f"({kind})(as_{signed}({a}) < as_{signed}({b}))"
        yield f"convert_{kind}{r.choice(('', '_sat'))}({self.value(other, depth - 1)})"
        if self._private:
            yield f"({kind})(held[{self.value('uint', 0)} & 7])"
        yield f"({kind})mixed({self.value('uint', 0)}, {self.value('uint', depth - 1)})"
        yield f"bitselect({a}, {b}, {a})"
        real = r.choice(self._reals)
        whole = f"convert_{kind}_sat{r.choice(('', '_rte', '_rtp', '_rtn'))}"
        yield f"{whole}({self.value(real, depth - 1)})"
        yield f"({kind})as_{FLOATS[real][0]}(known({self.value(real, depth - 1)}))"
        yield self._vector(kind, depth)

    def _vector(self, kind: str, depth: int) -> str:
        """An integer by way of a vector."""
        r, type_ = self._random, f"{kind}4"
        a, b = (f"({type_})({', '.join(self.value(kind, max(depth - 2, 0)) for _ in range(4))})" for _ in range(2))
        found = r.choice(
            (
                f"{a} {r.choice('+-^&|')} {b}", f"{a}.wzyx - {b}.xxyz", f"max({a}, {b})",
                f"select({a}, {b}, {a} > {b})", f"({type_})({a}.hi, {b}.lo)", f"shuffle({a}, {b})",
                f"convert_{type_}(convert_{r.choice(list(BITS))}4_sat({a}))",
            )
        )  # fmt: skip
        return f"({kind})folded_{kind}({found})"

    def statements(self, depth: int) -> Iterator[str]:
        """Some statements."""
        r = self._random
        for _ in range(r.randint(1, 2)):
            name = r.choice(list(self._variables))
            form = r.random()
            inner = "\n".join(self.statements(depth - 1)) if depth and form < 0.45 else ""
            if depth and form < 0.15:
                self._loops += 1
                n = f"n{self._loops}"
                stop = f"if ({self.value('uint', 1)} % 11 == 3) {r.choice(('break', 'continue'))};"
                yield f"for (uint {n} = 0; {n} < ({self.value('uint', 1)} & 7); {n}++) {{\n{stop}\n{inner}\n}}"
            elif depth and form < 0.35:
                other = "\n".join(self.statements(depth - 1))
                yield f"if ({self.value('uint', 1)} & 1) {{\n{inner}\n}} else {{\n{other}\n}}"
            elif depth and form < 0.45:
                cases = f"case 0: {{\n{inner}\n}}\ncase 2: {name} += 7; break;"
                yield f"switch ({self.value('uint', 1)} & 3) {{\n{cases}\n}}"
            elif form < 0.5 and self._private:
                yield f"held[{self.value('uint', 1)} & 7] = {self.value('uint', 1)};"
            elif form < 0.6 and self._local:
                n = r.randrange(7)
                yield f"atomic_{ATOMICS[n]}(&counters[{n}], (uint)x + {r.randrange(99)}u);"
            else:
                yield f"{name} = {self.value(self._variables[name], r.randint(1, 2))};"

    def kernel(self, name: str) -> str:
        """The kernel."""
        declared = "\n".join(f"{kind} {v} = ({kind})(x >> {n});" for n, (v, kind) in enumerate(self._variables.items()))
        body = ["\n".join(self.statements(1)) for _ in range(1 + self._local)]
        bits = [
            f"(ulong)as_{FLOATS[kind][0]}(known({v}))" if kind in FLOATS else f"(ulong){v}"
            for v, kind in self._variables.items()
        ]
        total = " ^ ".join(f"({number} << {n})" for n, number in enumerate(bits))
        wait = "barrier(CLK_LOCAL_MEM_FENCE);"
        lines = [
            f"kernel void {name}(global const ulong *in, global ulong *out) {{",
            f"uint i = get_global_id(0), l = get_local_id(0);\nulong x = in[i];\n{declared}",
        ]
        if self._private:
            lines.append("uint held[8] = {1, 2, 3, 4, 5, 6, 7, (uint)x};")
            total += " ^ held[3]"
        if self._local:
            lines += [
                f"local uint shared[{BLOCK}], counters[7];",
                f"if (l < 7) counters[l] = l ? 9 : -1;\n{wait}",
                body[1],
            ]
            lines += [f"shared[l] = {self.value('uint', 1)};\n{wait}", f"x += shared[(l * 7 + 3) % {BLOCK}];"]
            total += " ^ counters[l % 7]"
        return "\n".join([*lines, body[0], wait * self._local, f"out[i] = {total};\n}}\n"])


PRELUDE = "\n".join(
    [
        "#pragma OPENCL FP_CONTRACT OFF",
        "__attribute__((noinline)) uint mixed(uint a, uint b) {",
        "  for (uint n = a & 3; n; n--) b = b * 33u ^ a;",
        "  return b;\n}",
        *(
            f"{kind} folded_{kind}({kind}4 v) {{ return v.x ^ ({kind})(v.y + 5) ^ ({kind})(v.z * 3) ^ (v.w >> 1); }}"
            for kind in BITS
        ),
        "",
    ]
)
"""What all kernels may call. NaNs are one number, since OpenCL leaves their bits open, the sign too."""


def reals(target: str) -> list[str]:
    """The types of floats that a GPU has."""
    return [kind for kind, (_, bits) in FLOATS.items() if bits == 32 or TARGETS[target].double_math]


def program(seeds: Sequence[int], target: str = opencl.DEFAULT) -> str:
    """The text of the kernels of some seeds."""
    known = (
        f"{kind} known({kind} x) __attribute__((overloadable)) {{ return isnan(x) ? ({kind})7 : x; }}"
        for kind in reals(target)
    )
    return "\n".join([*known, PRELUDE, *(Writer(n, target).kernel(f"k{n}") for n in seeds)])


def given(seed: int) -> Array:
    """The input of a kernel: numbers of 64 bits, some of them small."""
    r = np.random.default_rng(seed)
    return r.integers(0, 2**64, ITEMS, np.uint64) >> r.choice(np.array([0, 0, 32, 60], np.uint64), ITEMS)


def results(made: opencl.Program, seed: int, engine: str) -> Array:
    """What a kernel computes here."""
    found = np.zeros(ITEMS, np.uint64)
    kernel = opencl.Program(made.compiled, Options(target=made.compiled.target, engine=engine)).kernels[f"k{seed}"]
    kernel[ITEMS, BLOCK](given(seed), found)
    return found


def wanted(peer: Peer, source: str, seed: int) -> Array:
    """What a kernel computes elsewhere."""
    case = Case("", opencl.Call(f"k{seed}", (), (ITEMS,), (BLOCK,)))
    return peer.run(source, case, (True, True), [given(seed), np.zeros(ITEMS, np.uint64)])[1]


def main(count: int, seed: int) -> int:
    """Run so many kernels from a seed on; the number of those with results that no implementation has."""
    peers, differing = all_peers(), 0
    for start in range(seed, seed + count, EACH):
        seeds = range(start, min(start + EACH, seed + count))
        target = list(DEVICES)[start // EACH % len(DEVICES)]
        source = program(seeds, target)
        # Half of the files without optimisation, which has forms of its own. For dg2, IGC 2.40 then makes a shift of
        # 64 bits by 0 from one of 32 bits by 32, which is one by 0.
        plain = " -cl-opt-disable" * (target != "dg2" and start // EACH // len(DEVICES) % 2)
        made = opencl.compile(source, target=target, options=OPTIONS + plain)
        for n in seeds:
            try:
                found = results(made, n, "interpreter" if n % BOTH else "both")
            except Exception as e:
                why = f"{type(e).__name__}: {e}"
            else:
                why = judged(found, peers, source, n)
            if why:
                differing += 1
                print(f"seed {n}, {target}{plain}: {why}", file=sys.stderr)
    print(f"{count} kernels, {differing} differ from {' and '.join(p.name for p in peers)}")
    return differing


def judged(found: Array, peers: Sequence[Peer], source: str, seed: int) -> str:
    """How a result differs from those of all implementations; empty if one has it. Those of the first are printed."""
    why = ""
    for peer in peers:
        refused = source not in peer.programs and peer.build(source, OPTIONS, "-cl-opt-disable")
        other = refused or Case("", opencl.Call("", (), ())).differs(found, wanted(peer, source, seed))
        if not other:
            if why:
                print(f"seed {seed}: {peer.name} agrees, {peers[0].name} does not: {why}", file=sys.stderr)
            return ""
        why = why or other
    return why


def all_peers() -> list[Peer]:
    """All implementations that pyopencl finds, the preferred one first."""
    vendors()
    import pyopencl as cl

    return [Peer(cl, device) for device in devices()]


def record() -> None:
    """Record the results of `COUNT` kernels."""
    peer, source = all_peers()[0], program(range(COUNT))
    if why := peer.build(source, OPTIONS, "-cl-opt-disable"):
        sys.exit(why)
    made = Recorded(digest(source.encode()), [digest(wanted(peer, source, n).tobytes()) for n in range(COUNT)])
    RECORDED.write_bytes(msgspec.msgpack.encode(made))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        numbers = [int(word) for word in sys.argv[1:]]
        sys.exit(main(*(numbers + [200, 0][len(numbers) :])) > 0)
