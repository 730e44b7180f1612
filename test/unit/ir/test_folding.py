"""Constants have the bits of docs/numerics.md, not those of MLIR's folders and of the host's C library."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from effort import some

import xegpu_py
from xegpu_py import reference
from xegpu_py.passes.xegpu_to_visa import lowering

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "erf", "tan", "asinh", "cbrt")
STORE = """%x{i} = {x}
    %y{i} = {op} : {t}
    %at{i} = arith.constant {i} : index
    {store}
    """


def kernel(body: str, count: int) -> str:
    return f"""
gpu.module @m {{
  gpu.func @k(%out: memref<{count}x4xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    {body}
    gpu.return
  }}
}}
"""


def run(text: str, count: int) -> np.ndarray:
    """The result of the engines, which equals that of the reference."""
    found, wanted = (np.zeros((count, 4), np.float32) for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(found)
    reference.run(xegpu_py.parse(text), "k", [wanted])
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    return found


@pytest.mark.parametrize("is_vector", [False, True])
def test_functions_of_constants(is_vector):
    body, count = "", 4 * len(UNARY)
    for i in range(count):
        x = 0.37 + 0.61 * (i // len(UNARY))
        t = "vector<4xf32>" if is_vector else "f32"
        value = f"arith.constant dense<{x}> : {t}" if is_vector else f"arith.constant {x} : f32"
        store = f"vector.store %y{i}, %out[%at{i}, %c0] : memref<{count}x4xf32>, vector<4xf32>"
        if not is_vector:
            store = f"memref.store %y{i}, %out[%at{i}, %c0] : memref<{count}x4xf32>"
        body += STORE.format(i=i, x=value, op=f"math.{UNARY[i % len(UNARY)]} %x{i}", t=t, store=store)
    assert np.count_nonzero(run(kernel(body, count), count)) >= count - 8


def test_functions_beside_what_becomes_loops():
    """The passes of upstream's that make loops of copies and affine ops fold too."""
    body = """%c4 = arith.constant 4.0 : f32
    %part = memref.subview %out[0, 0] [1, 4] [1, 1] : memref<1x4xf32> to memref<1x4xf32>
    %e = math.exp %c4 : f32
    memref.copy %part, %part : memref<1x4xf32> to memref<1x4xf32>
    memref.store %e, %out[%c0, %c1] : memref<1x4xf32>"""
    # The nearest number is 0x425A6481; the written algorithm of exp gives the next one.
    assert run(kernel(body, 1), 1).view(np.uint32)[0, 1] == 0x425A6482


@pytest.mark.parametrize("all_set", ["", "vector.mask %three"])
def test_equal_ops_with_and_without_a_mask(all_set):
    """Upstream's cse takes an op under a mask for an equal one that is not under one."""
    reduction = "vector.reduction <maximumf>, %x : vector<3xf32> into f32"
    whole = f"{all_set} {{ {reduction} }} : vector<3xi1> -> f32" if all_set else reduction
    body = f"""%x = arith.constant dense<[1.0, 2.0, 5.0]> : vector<3xf32>
    %three = vector.constant_mask [3] : vector<3xi1>
    %two = vector.constant_mask [2] : vector<3xi1>
    %a = {whole}
    %b = vector.mask %two {{ {reduction} }} : vector<3xi1> -> f32
    memref.store %a, %out[%c0, %c1] : memref<1x4xf32>
    memref.store %b, %out[%c0, %c3] : memref<1x4xf32>"""
    module = xegpu_py.parse(kernel(body, 1))
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,cse)")
    assert "xegpu_py" not in str(module)
    for text in (kernel(body, 1), str(module)):
        assert run(text, 1).tolist() == [[0, 5, 0, 2]]


def test_constants_that_loops_carry():
    """A loop of one iteration is removed, and the values that it carries become constants."""
    body = """%x = arith.constant 1.37 : f32
    %y = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (f32) {
      %b = math.exp %a : f32
      %c = math.powf %b, %a : f32
      scf.yield %c : f32
    }
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>"""
    assert run(kernel(body, 1), 1)[0, 0] > 0


@pytest.mark.parametrize(
    "integer",
    [
        "arith.cmpi eq, %i, %i : i32\n    %n = arith.extsi %b : i1 to i32",
        "arith.subi %i, %i : i32\n    %o = arith.constant -3 : i32\n    %n = arith.addi %b, %o : i32",
        "arith.constant 3 : i32\n    %z = arith.subi %i, %i : i32\n    %n = arith.xori %z, %b : i32",
    ],
)
def test_constants_of_integers_that_are_not(integer):
    """x == x and x - x are constants for any x."""
    body = f"""%id = gpu.block_id x
    %i = arith.index_cast %id : index to i32
    %b = {integer}
    %x = arith.sitofp %n : i32 to f32
    %y = math.acosh %x : f32
    %w = math.log1p %y : f32
    %v = math.tan %x : f32
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>
    memref.store %w, %out[%c0, %c1] : memref<1x4xf32>
    memref.store %v, %out[%c0, %c3] : memref<1x4xf32>"""
    run(kernel(body, 1), 1)


def test_constants_of_known_launches():
    """The number of a workgroup is a constant if the grid has only one."""
    body = """%id = gpu.block_id x
    %i = arith.index_cast %id : index to i32
    """
    for i in range(16):
        body += f"""%o{i} = arith.constant {i + 1} : i32
    %n{i} = arith.addi %i, %o{i} : i32
    %x{i} = arith.sitofp %n{i} : i32 to f32
    %y{i} = math.{("tanh", "erf", "log10", "exp")[i % 4]} %x{i} : f32
    %at{i} = arith.constant {i} : index
    memref.store %y{i}, %out[%at{i}, %c0] : memref<16x4xf32>
    """
    text = kernel(body, 16)
    run(text.replace("kernel {", "kernel attributes {known_grid_size = array<i32: 1, 1, 1>} {"), 16)


def test_hidden_functions_keep_their_attributes_and_are_moved_and_removed():
    text = kernel(
        """%x = arith.constant 1.37 : f32
    %dead = math.exp %x : f32
    %y = math.exp %x fastmath<nnan> : f32
    scf.for %i = %c0 to %c3 step %c1 {
      %z = math.powf %y, %x : f32
      memref.store %z, %out[%c0, %i] : memref<1x4xf32>
    }""",
        1,
    )
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,gpu.module(gpu.func(loop-invariant-code-motion)))")
    found = str(module)
    assert found.count("math.exp ") == 1
    assert "math.exp %cst fastmath<nnan>" in found
    assert found.index("math.powf") < found.index("scf.for")
    assert "hidden" not in found


@pytest.mark.parametrize(
    ("kinds", "number"),
    [
        (("i32", "f32", "bf16"), 2**30 + 2**22 + 1),
        (("i64", "f64", "f32"), 2**60 + 2**36 + 1),
        (("i32", "f64", "tf32"), 2**30 + 2**19 + 1),
    ],
)
@pytest.mark.parametrize("name", ["sitofp", "uitofp"])
def test_integers_are_rounded_as_often_as_written(kinds, number, name):
    """The first rounding makes a tie of the number, which canonicalization would not do."""
    integer, wide, narrow = kinds
    body = f"""%n = memref.load %in[%c0] : memref<1x{integer}>
    %x = arith.{name} %n : {integer} to {wide}
    %y = arith.truncf %x : {wide} to {narrow}
    {"%z = arith.bitcast %y : f32 to f32" if narrow == "f32" else f"%z = arith.extf %y : {narrow} to f32"}
    memref.store %z, %out[%c0, %c0] : memref<1x4xf32>"""
    text = kernel(body, 1).replace("@k(", f"@k(%in: memref<1x{integer}>, ")
    given = np.array([number], f"i{int(integer[1:]) // 8}")
    found, wanted = (np.zeros((1, 4), np.float32) for _ in range(2))
    xegpu_py.compile(text, engine="both", cache="off")(given, found)
    reference.run(xegpu_py.parse(text), "k", [given, wanted])
    np.testing.assert_array_equal(found, wanted)
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    assert f"arith.truncf %1 : {wide} to {narrow}" in str(module)


def test_long_chains_of_ops():
    sums = "\n".join(f"%x{i + 1} = arith.addf %x{i}, %x0 : f32" for i in range(3000))
    body = f"""%x0 = memref.load %out[%c0, %c0] : memref<1x4xf32>
    {sums}
    %y = math.exp %x3000 : f32
    memref.store %y, %out[%c0, %c0] : memref<1x4xf32>"""
    module = xegpu_py.parse(kernel(body, 1))
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    assert str(module).count("math.exp ") == 1


# Constants against numbers that are known at run time only, for every op on numbers and every type.

FLOATS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7), "f8E5M2": (5, 2), "f8E4M3FN": (4, 3)}
INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
WIDTHS = {**INTEGERS, **{name: 1 + exponent + mantissa for name, (exponent, mantissa) in FLOATS.items()}}
DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "index": np.int64,
}  # fmt: skip
FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
    "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
"""Functions that f64 lacks."""
DIVISIONS = ("ceildivs", "ceildivsi", "ceildivu", "ceildivui", "divs", "divsi", "divu", "divui", "floordivs",
             "floordivsi", "rems", "remsi", "remu", "remui")  # fmt: skip


def special(kind: str) -> list[int]:
    """The bits of numbers at which rules change: limits, zeros, subnormal numbers, NaNs of each sign, quiet or not."""
    width = WIDTHS[kind]
    if kind in INTEGERS:
        low = 1 << width - 1
        return sorted({0, 1, 2 % (2 * low), width % (2 * low), low - 1, low, 2 * low - 1, (2 * low - 7) % (2 * low)})
    mantissa = FLOATS[kind][1]
    top, one = (1 << width - 1) - (1 << mantissa), (1 << FLOATS[kind][0] - 1) - 1 << mantissa
    half = 1 << mantissa - 1
    positive = [0, 1, one, one + 3 * half, top - 1, top, top | 1, top | half | 1]
    return positive + [n | 1 << width - 1 for n in (0, one, top, top | half)]


@dataclass
class Case:
    """An op on vectors, of all tuples of special numbers.

    Attributes:
        text: the op, with `$0` for the first operand, `<0>` for its type, `<r0>` for the type of the first result, `#x`
            for the elements of a vector, `##x` for twice as many, and `#last` for the last one.
        before: ops before it; `$p`, `$q`, `$s`, `$t` and `$u` are their results.
    """

    text: str
    operands: list[str]
    results: list[str]
    before: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.text.split()[0]

    @property
    def given(self) -> list[np.ndarray]:
        """The bits of the operands; without the operands of which the result is undefined."""
        choices = [special(kind) for kind in self.operands]
        if len(choices) == 3 or self.name in ("arith.remf", "math.atan2", "math.powf"):
            choices = [numbers[::3] for numbers in choices]
        pairs = list(itertools.product(*choices))
        width = WIDTHS[self.operands[0]]
        what = self.name.partition(".")[2]
        if what in DIVISIONS:
            pairs = [(a, b) for a, b in pairs if b and not (b + 1 == 1 << width and a == 1 << width - 1)]
        elif what == "ipowi":
            pairs = [(a, b) for a, b in pairs if a]
        elif what.startswith("sh") and width == 1:
            pairs = [(a, b) for a, b in pairs if not b]
        return [np.array(bits, f"u{max(WIDTHS[kind], 8) // 8}") for bits, kind in zip(zip(*pairs), self.operands)]


def cases_of(kind: str) -> Iterator[Case]:
    """The ops whose first operand has this type."""

    def case(name: str, operands: int | list[str] = 2, result: str = kind, tail: str | None = None) -> Case:
        kinds = [kind] * operands if isinstance(operands, int) else operands
        uses = ", ".join(f"${i}" for i in range(len(kinds)))
        return Case(f"{name} {uses} : {tail or '<0>'}", kinds, [result])

    to = "<0> to <r0>"
    others = [other for other in WIDTHS if other != kind]
    if kind in FLOATS:
        for name in ("addf", "divf", "maximumf", "maxnumf", "minimumf", "minnumf", "mulf", "remf", "subf"):
            yield case(f"arith.{name}")
        yield case("arith.negf", 1)
        exact = ("absf", "ceil", "floor", "round", "roundeven", "rsqrt", "sqrt", "trunc")
        yield from (case(f"math.{name}", 1) for name in exact + FUNCTIONS * (kind != "f64"))
        yield from (case(f"math.{name}", 1, "i1") for name in ("isfinite", "isinf", "isnan", "isnormal"))
        yield from (case(f"math.{name}") for name in ("copysign", *("atan2", "powf") * (kind != "f64")))
        yield from (
            case(f"arith.cmpf {name},", 2, "i1") for name in ("oeq", "ogt", "one", "ord", "true", "ueq", "ult", "uno")
        )
        yield from (case(name, 3) for name in ("math.fma", "vector.fma"))
        yield Case("math.clampf $0 to [$1, $2] : <0>", [kind] * 3, [kind])
        if kind != "f64":
            yield case("math.fpowi", [kind, "i32"], tail="<0>, <1>")
            yield Case("math.sincos $0 : <0>", [kind], [kind, kind])
        for other in others:
            if other in FLOATS and WIDTHS[other] != WIDTHS[kind]:
                yield case("arith.extf" if WIDTHS[other] > WIDTHS[kind] else "arith.truncf", [kind], other, to)
            elif other in INTEGERS and other not in ("i1", "index"):
                yield from (case(f"arith.{name}", [kind], other, to) for name in ("fptosi", "fptoui"))
        yield case("arith.bitcast", [kind], f"i{WIDTHS[kind]}", to)
        yield case("vector.bitcast", [kind], f"i{WIDTHS[kind]}", to)
    else:
        for name in ("addi", "andi", "maxsi", "maxui", "minsi", "minui", "muli", "ori", "subi", "xori", "shli", "shrsi",
                     "shrui", "ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui"):  # fmt: skip
            yield case(f"arith.{name}")
        yield Case("arith.addui_extended $0, $1 : <0>, <r1>", [kind] * 2, [kind, "i1"])
        yield from (
            Case(f"arith.{n} $0, $1 : <0>", [kind] * 2, [kind] * 2) for n in ("mulsi_extended", "mului_extended")
        )
        yield from (case(f"arith.cmpi {name},", 2, "i1") for name in ("eq", "ne", "sge", "slt", "uge", "ult"))
        if kind not in ("i1", "index"):
            yield from (case(f"math.{name}", 1) for name in ("absi", "ctlz", "ctpop", "cttz"))
            yield case("math.ipowi")
            for other in FLOATS:
                yield from (case(f"arith.{name}", [kind], other, to) for name in ("sitofp", "uitofp"))
                if WIDTHS[other] == WIDTHS[kind]:
                    yield from (case(f"{name}.bitcast", [kind], other, to) for name in ("arith", "vector"))
        for other in others:
            if other in INTEGERS and "index" in (kind, other):
                yield from (case(f"arith.{name}", [kind], other, to) for name in ("index_cast", "index_castui"))
            elif other in INTEGERS:
                wider = WIDTHS[other] > WIDTHS[kind]
                yield from (
                    case(f"arith.{name}", [kind], other, to) for name in (("extsi", "extui") if wider else ("trunci",))
                )
    yield Case("arith.select $0, $1, $2 : <0>, <1>", ["i1", kind, kind], [kind])
    # Ops that move or combine the elements of a vector, of pairs side by side.
    pairs = (
        f"$p = vector.interleave $0, $1 : <0> -> vector<##x{kind}>",
        f"$q = vector.shape_cast $p : vector<##x{kind}> to vector<#x2x{kind}>",
    )
    kinds = ("add", "mul", "minui", "maxsi", "and", "or", "xor")
    if kind in FLOATS:
        kinds = ("add", "mul", "minimumf", "maximumf", "minnumf", "maxnumf")
    for name in kinds:
        text = f"vector.multi_reduction <{name}>, $q, $2 [1] : vector<#x2x{kind}> to <2>"
        yield Case(text, [kind] * 3, [kind], pairs)
    yield Case(f"vector.deinterleave $p : vector<##x{kind}> -> <r0>", [kind] * 2, [kind] * 2, pairs[:1])
    across = f"$t = vector.transpose $q, [1, 0] : vector<#x2x{kind}> to vector<2x#x{kind}>"
    row = f"vector.extract $t[1] : <0> from vector<2x#x{kind}>"
    yield Case(row, [kind] * 2, [kind], (*pairs, across))
    for name, inclusive in ((kinds[0], "true"), (kinds[-1], "false")):
        how = f"{{inclusive = {inclusive}, reduction_dim = 1 : i64}}"
        scan = f"$s, $u = vector.scan <{name}>, $q, $2 {how} : vector<#x2x{kind}>, vector<#x{kind}>"
        yield Case(row, [kind] * 3, [kind], (*pairs, scan, across.replace("$q", "$s")))
        forms = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>"
        combined = f"kind = #vector.kind<{name}>"
        yield Case(
            f'vector.contract {{indexing_maps = [{forms}], iterator_types = ["parallel", "reduction"], {combined}}} '
            f"$q, $q, $2 : vector<#x2x{kind}>, vector<#x2x{kind}> into <2>",
            [kind] * 3,
            [kind],
            pairs,
        )
        first = f"$p = vector.extract $1[#last] : {kind} from vector<#x{kind}>"
        yield Case(f"vector.outerproduct $0, $p, $2 {{{combined}}} : <0>, {kind}", [kind] * 3, [kind], (first,))


def written(bits: np.ndarray, kind: str) -> str:
    """The elements of a constant."""
    width = WIDTHS[kind]
    if kind in FLOATS:
        return ", ".join(f"0x{n:0{width // 4}X}" for n in bits.tolist())
    numbers = [n - (1 << width) if n >> width - 1 else n for n in bits.tolist()]
    return ", ".join(map(str, numbers)) if kind != "i1" else ", ".join("true" if n else "false" for n in numbers)


def outcomes(cases: list[Case], *, constant: bool, engine: str) -> list[np.ndarray]:
    """The bits of what each op makes of operands that are constants, or else arguments."""
    parameters, lines, arrays, made = [], [], [], []

    def parameter(name: str, kind: str, bits: np.ndarray) -> str:
        held = f"memref<{len(bits)}x{'i8' if kind == 'i1' else kind}>"
        parameters.append(f"{name}: {held}")
        arrays.append(bits.view(DTYPES.get(kind, f"i{bits.itemsize}")))
        return f"{name}[%c0] : {held}, {held.replace('memref', 'vector')}"

    for i, case in enumerate(cases):
        text, given = "\n".join((*case.before, "$r = " + case.text)), case.given
        n = len(given[0])
        text = text.replace("##x", f"{2 * n}x").replace("#x", f"{n}x").replace("#last", str(n - 1))
        text = re.sub(r"\$([pqstu])", rf"%\g<1>{i}", text)
        for j, (kind, bits) in enumerate(zip(case.operands, given)):
            name, vector = f"%x{i}_{j}", f"vector<{n}x{kind}>"
            text = text.replace(f"${j}", name).replace(f"<{j}>", vector)
            if constant:
                lines.append(f"{name} = arith.constant dense<[{written(bits, kind)}]> : {vector}")
            elif kind == "i1":
                lines.append(f"{name}b = vector.load {parameter(f'%a{i}_{j}', kind, bits)}")
                lines.append(f"{name} = arith.trunci {name}b : vector<{n}xi8> to {vector}")
            else:
                lines.append(f"{name} = vector.load {parameter(f'%a{i}_{j}', kind, bits)}")
        results = [f"%r{i}_{j}" for j in range(len(case.results))]
        for j, kind in enumerate(case.results):
            text = text.replace(f"<r{j}>", f"vector<{n}x{kind}>")
        lines.append(text.replace("$r", ", ".join(results)))
        for name, kind in zip(results, case.results):
            made.append(np.zeros(n, f"u{max(WIDTHS[kind], 8) // 8}"))
            if kind == "i1":
                lines.append(f"{name}b = arith.extui {name} : vector<{n}xi1> to vector<{n}xi8>")
            value = f"{name}b" if kind == "i1" else name
            lines.append(f"vector.store {value}, {parameter(f'%o{name[2:]}', kind, made[-1])}")
    body = "\n    ".join(["%c0 = arith.constant 0 : index", *lines])
    text = f"gpu.module @m {{ gpu.func @k({', '.join(parameters)}) kernel {{\n    {body}\n    gpu.return }} }}"
    if engine == "reference":
        reference.run(xegpu_py.parse(text), "k", arrays)
    else:
        xegpu_py.compile(text, engine=engine, cache="off")(*arrays)
    return made


@pytest.mark.parametrize("kind", WIDTHS)
def test_constants_and_arguments_give_the_same(kind):
    """Each op on constants gives the bits on the engines that the reference gives of arguments, which nothing folds."""
    cases = some(cases_of(kind), 1 / 6, first=list(WIDTHS).index(kind))
    wanted = outcomes(cases, constant=False, engine="reference")
    names = [f"{case.text} of {case.operands}" for case in cases for _ in case.results]
    found = outcomes(cases, constant=True, engine="both")
    for name, a, b in zip(names, found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, name)


INDEX_OPS = ("add", "and", "casts", "castu", "ceildivs", "ceildivu", "cmp", "divs", "divu", "floordivs", "maxs", "maxu",
             "mins", "minu", "mul", "or", "rems", "remu", "shl", "shrs", "shru", "sub", "xor")  # fmt: skip


def ops_of_index(numbers: list[int], value: str) -> tuple[str, int]:
    """Each op of the dialect `index` on all pairs of numbers, and how many results it writes.

    Args:
        value: the op that gives number `{n}`, which is the element `%at{i}` of an argument.
    """
    lines = [f"%at{i} = arith.constant {i} : index\n%n{i} = {value.format(i=i, n=n)}" for i, n in enumerate(numbers)]
    count = 0
    for name, (i, j) in itertools.product(INDEX_OPS, itertools.product(range(len(numbers)), repeat=2)):
        if name in DIVISIONS and (numbers[j] == 0 or (numbers[i] == -(2**63) and numbers[j] == -1)):
            continue
        op = {
            "casts": f"%h{count} = index.casts %n{i} : index to i32\n%r{count} = index.casts %h{count} : i32 to index",
            "castu": f"%h{count} = index.castu %n{i} : index to i32\n%r{count} = index.castu %h{count} : i32 to index",
            "cmp": f"%h{count} = index.cmp {('slt', 'uge')[i % 2]}(%n{i}, %n{j})\n"
            f"%r{count} = arith.index_castui %h{count} : i1 to index",
        }.get(name, f"%r{count} = index.{name} %n{i}, %n{j}")
        place = f"%to{count} = arith.constant {count} : index"
        lines.append(f"{op}\n{place}\nmemref.store %r{count}, %out[%to{count}] : memref<?xindex>")
        count += 1
    body = "\n".join(lines)
    arguments = "%in: memref<?xindex>, %out: memref<?xindex>"
    return f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{body}\ngpu.return }} }}", count


def test_ops_of_index():
    """They are on scalars, which wrap at 64 bits."""
    numbers = [-(2**63), -7, 0, 3, 2**63 - 1]
    given = np.array(numbers)
    text, count = ops_of_index(numbers, "memref.load %in[%at{i}] : memref<?xindex>")
    wanted, found = np.zeros(count, np.int64), np.zeros(count, np.int64)
    reference.run(xegpu_py.parse(text), "k", [given, wanted])
    text, _ = ops_of_index(numbers, "index.constant {n}")
    xegpu_py.compile(text, engine="both", cache="off")(given, found)
    np.testing.assert_array_equal(found, wanted)
    assert len(set(found.tolist())) > 20


def test_all_ops_on_numbers_are_compared():
    """An op that kernels accept is compared, or is none on numbers."""
    names = {case.name for kind in WIDTHS for case in cases_of(kind)} | {f"index.{name}" for name in INDEX_OPS}
    accepted = {name for name in lowering.vc_lowering_rule if name.startswith(("arith.", "index.", "math."))}
    assert accepted - names == {"arith.constant", "index.constant", "index.sizeof"}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("kind", ["i8", "i64"])
def test_loops_of_wide_constant_bounds(kind, computed):
    """MLIR removes a loop whose bounds differ by more than their type holds."""
    low = 1 << WIDTHS[kind] - 1
    bounds = [-low, 1 - low, -1, 0, 1, low - 28, low - 1]
    pairs = list(itertools.product(bounds, bounds))
    step = low - 28
    lines = [f"%s = arith.constant {step} : {kind}", "%z = arith.constant 0.0 : f32", "%one = arith.constant 1.0 : f32"]
    lines += [f"%two = arith.constant 2 : {kind}"] if computed else []
    for i, (first, last) in enumerate(pairs):
        begin = f"%a{i} = arith.constant {first} : {kind}"
        if computed:
            begin = f"%h{i} = arith.constant {first - 2} : {kind}\n    %a{i} = arith.addi %h{i}, %two : {kind}"
            begin = begin.replace(str(first - 2), str((first - 2 + low) % (2 * low) - low), 1)
        lines.append(f"""{begin}
    %b{i} = arith.constant {last} : {kind}
    %r{i} = scf.for %k{i} = %a{i} to %b{i} step %s iter_args(%x{i} = %z) -> (f32) : {kind} {{
      %y{i} = arith.addf %x{i}, %one : f32
      scf.yield %y{i} : f32
    }}
    %at{i} = arith.constant {i} : index
    memref.store %r{i}, %out[%at{i}, %c0] : memref<{len(pairs)}x4xf32>""")
    found = run(kernel("\n    ".join(lines), len(pairs)), len(pairs))
    assert found[:, 0].tolist() == [len(range(first, last, step)) for first, last in pairs]


def test_powers_of_truth_values():
    """MLIR's folder of `math.ipowi` ends the process on constants of i1."""
    module = xegpu_py.parse("""
    func.func @f() -> i1 {
      %true = arith.constant true
      %x = math.ipowi %true, %true : i1
      return %x : i1
    }""")
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,sccp,int-range-optimizations,math-uplift-to-fma)")
    assert "math.ipowi" in str(module)


def test_hidden_conversions_that_undo_each_other():
    """A cast that undoes another one would be replaced by what that one casts."""
    module = xegpu_py.parse("""
    func.func @f(%i: i32) -> f32 {
      %n = arith.subi %i, %i : i32
      %x = arith.bitcast %n : i32 to f32
      %y = arith.truncf %x : f32 to f16
      %z = arith.extf %y : f16 to f32
      return %z : f32
    }""")
    xegpu_py.run_pipeline(module, "builtin.module(int-range-optimizations)")
    assert "arith.extf" in str(module)
