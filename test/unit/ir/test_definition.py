"""The definition layer, on a dialect made for these tests: everything that a class can declare."""

import dataclasses
import pickle
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from mlir import ir

from xegpu_py import external_tools
from xegpu_py.ir.builtin import Index, Integer, MemRef, Vector
from xegpu_py.ir.codecs import TypeText
from xegpu_py.ir.context import Context, dump
from xegpu_py.ir.definition import (
    Attr,
    Attribute,
    Dialect,
    IndexList,
    Interface,
    Operand,
    Region,
    Result,
    Type,
    default,
    enum_attr,
)
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import Module, parse_source
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.ir.printer import Printer


class Toy(Dialect, name="toy"):
    """A dialect for tests."""


@enum_attr(Toy, "color")
class Color(str, Enum):
    """A color."""

    RED = "red"
    GREEN = "green"


class Range(Attr, dialect=Toy, name="range"):
    """From where to where."""

    low: int
    high: int


class Style(Attr, dialect=Toy, name="style"):
    """Every kind of parameter."""

    color: Color
    bold: bool
    font: str
    sizes: tuple[int, ...]
    element: TypeText
    span: Range | None


class Box(Type, dialect=Toy, name="box"):
    """A box."""

    size: int


@dataclass(frozen=True)
class Token(Type, dialect=Toy, name="token"):
    """A type without parameters."""


class GroupsOp(Operation, dialect=Toy, name="groups"):
    """Operand and result groups of all arities."""

    first: Operand[Integer]
    maybe: Operand[Index] | None = None
    many: Sequence[Operand[Any]]
    out: Result[Box]
    more: Sequence[Result[Integer]]
    last: Result[Token] | None = None
    assembly_format = (
        "$first (`maybe` $maybe^)? `` `(` $many `)` attr-dict `:` type($first) `,` `(` type($many) `)` "
        "`->` type($out) `,` `(` type($more) `)` (`and` type($last)^)?"
    )


class AttributesOp(Operation, dialect=Toy, name="attributes"):
    """Attributes of all kinds."""

    number: Attribute[int]
    flag: Attribute[bool] = default(False)
    text: Attribute[str] | None = None
    list: Attribute[tuple[int, ...]] = default((1, 2))
    color: Attribute[Color] = default(Color.RED)
    range: Attribute[Range] | None = None
    anything: Attribute[Any] | None = None
    assembly_format = "$number attr-dict"


class RegionOp(Operation, dialect=Toy, name="region"):
    """A region, and a value used in it."""

    value: Operand[Integer]
    body: Region
    out: Result[Integer]
    assembly_format = "$value $body attr-dict `:` type($value) `->` type($out)"


class CasesOp(Operation, dialect=Toy, name="cases"):
    """Several regions."""

    first: Region
    second: Region | None
    third: Region
    assembly_format = "$first (`else` $second^)? `finally` $third attr-dict"


class SliceOp(Operation, dialect=Toy, name="slice"):
    """Index lists."""

    source: Operand[MemRef]
    offsets: IndexList
    sizes: IndexList
    out: Result[Vector]
    assembly_format = "$source `` $offsets (`by` $sizes^)? attr-dict `:` type($source) `->` type($out)"


class SameOp(Operation, dialect=Toy, name="same", also_named=("identical",)):
    """An inferred result type."""

    value: Operand[Any]
    out: Result[Any]
    assembly_format = "$value attr-dict `:` type($value)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"out": parsed.type_of("value")}


class MakeTokenOp(Operation, dialect=Toy, name="make_token"):
    """A result type that need not be given."""

    token: Result[Token]
    assembly_format = "attr-dict"


class SmallOp(Operation, dialect=Toy, name="small"):
    """A rule of its own."""

    size: Attribute[int]
    assembly_format = "$size attr-dict"

    def verify_op(self) -> None:
        if self.size > 9:
            self.fail(f"size must be below 10, but got {self.size}", "sizes have one digit")


@pytest.fixture
def context() -> Context:
    return Context(irdl_dialects=[Toy])


def read(context: Context, text: str) -> Module:
    return parse_source(Source(text, "toy.mlir"), context=context)


def body_of(text: str) -> str:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "func.func" in line) + 1
    return "\n".join(line[4:] for line in lines[start : len(lines) - 3])


HEAD = "func.func @f(%a: i32, %i: index, %m: memref<8x8xf32>, %b: !toy.box<size = 2>) {\n"

ROUND_TRIPS = [
    "%0 = toy.groups %a() : i32, () -> !toy.box<size = 4>, ()",
    "%0:2 = toy.groups %a maybe %i(%b, %b) : i32, (!toy.box<size = 2>, !toy.box<size = 2>) -> "
    "!toy.box<size = 4>, () and !toy.token",
    "%0:3 = toy.groups %a(%a) : i32, (i32) -> !toy.box<size = 4>, (i64, i64)",
    "toy.attributes 3",
    'toy.attributes -3 {flag = true, text = "a \\22b\\22", list = [], color = green, '
    "range = #toy.range<low = 0, high = 9>, anything = dense<1> : tensor<2xi8>}",
    "toy.attributes 1 {other.unit, other.value = [1, 2]}",
    "%0 = toy.slice %m[%i, 4] : memref<8x8xf32> -> vector<4xf32>",
    "%0 = toy.slice %m[0, -1] by [%i, %i] : memref<8x8xf32> -> vector<4xf32>",
    "%0 = toy.same %b : !toy.box<size = 2>",
    "%0 = toy.make_token",
    "toy.small 9",
    "%0 = toy.region %a {\n^bb0(%x: i32):\n%1 = toy.same %x : i32\ntoy.small 1\nub.unreachable\n} "
    "{x.y = 1 : i64} : i32 -> i32",
    "%0 = toy.region %a {\n} : i32 -> i32",
    "toy.cases {\ntoy.small 1\nub.unreachable\n} else {\n%0 = toy.region %a {\ntoy.small 2\nub.unreachable\n} : i32 "
    "-> i32\nub.unreachable\n} finally {\n}",
    "toy.cases {\n} finally {\n%0 = toy.make_token\nub.unreachable\n} {x.y}",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
@pytest.mark.parametrize("debuginfo", [False, True])
def test_round_trip(context: Context, text: str, debuginfo: bool) -> None:
    module = read(context, f"{HEAD}{text}\nreturn\n}}")
    printed = module.text(debuginfo=debuginfo)
    if not debuginfo:
        assert shape(text) in shape(printed)
    for spelled in (printed, module.text(generic=True, debuginfo=debuginfo)):
        assert read(context, spelled).text(debuginfo=debuginfo) == printed


def shape(text: str) -> str:
    """The text without the names of values, and with single spaces."""
    return re.sub(r"%\w+", "%", " ".join(text.split()))


def test_lines_and_columns_in_regions(context: Context) -> None:
    module = read(
        context,
        f"{HEAD}toy.cases {{ toy.small 1 ub.unreachable }} finally\n  {{ toy.small 2 ub.unreachable }}\nreturn }}",
    )
    places = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "toy.small":
            places.append((op.location.start_line, op.location.start_col))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert places == [(2, 13), (3, 5)]


ALIVE: list[Module] = []


def op_of(context: Context, text: str) -> Any:
    module = read(context, f"{HEAD}{text}\nreturn\n}}")
    # The bindings do not keep a module alive for the sake of an op in it.
    ALIVE.append(module)
    return module.body.operations[0].regions[0].blocks[0].operations[0]


def test_accessors(context: Context) -> None:
    op = op_of(context, ROUND_TRIPS[1])
    assert isinstance(op, GroupsOp)
    assert str(op.first.type) == "i32"
    assert str(op.maybe.type) == "index"
    assert [str(v.type) for v in op.many] == ["!toy.box<2 : i64>", "!toy.box<2 : i64>"]
    assert Box.of(op.out) == Box(4)
    assert op.more == []
    assert str(op.last.type) == "!toy.token"
    op = op_of(context, ROUND_TRIPS[2])
    assert op.maybe is None
    assert op.last is None
    assert [str(v.type) for v in op.more] == ["i64", "i64"]


def test_attribute_accessors(context: Context) -> None:
    op = op_of(context, "toy.attributes 3")
    assert (op.number, op.flag, op.text, op.list, op.color, op.range) == (3, False, None, (1, 2), Color.RED, None)
    op = op_of(context, ROUND_TRIPS[4])
    assert (op.number, op.flag, op.list, op.color, op.range) == (-3, True, (), Color.GREEN, Range(0, 9))
    assert op.text == 'a "b"'


def test_index_list_accessors(context: Context) -> None:
    op = op_of(context, "%0 = toy.slice %m[%i, 4] : memref<8x8xf32> -> vector<4xf32>")
    offset, four = op.offsets
    assert isinstance(offset, ir.Value)
    assert four == 4
    assert op.sizes == []


def test_region_accessors(context: Context) -> None:
    op = op_of(context, ROUND_TRIPS[13])
    assert [len(list(r.blocks)) for r in (op.first, op.second, op.third)] == [1, 1, 0]
    assert len(list(op_of(context, ROUND_TRIPS[12]).body.blocks)) == 0


def test_defaults_are_printed_on_request(context: Context) -> None:
    module = read(context, f"{HEAD}toy.attributes 3\nreturn\n}}")
    assert "toy.attributes 3 {flag = false, list = [1, 2], color = red}" in module.text(print_defaults=True)
    assert read(context, module.text(print_defaults=True)).text() == module.text()


def test_builder(context: Context) -> None:
    module = read(context, f"{HEAD}return\n}}")
    block = module.body.operations[0].regions[0].blocks[0]
    a, i, m, b = block.arguments
    with context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]):
        groups = GroupsOp(a, [b, b], out=Box(4), more=["i32"], maybe=i, last=Token())
        assert groups.maybe == i
        AttributesOp(3, flag=True, color="green", list=[4], range=Range(0, 1))
        AttributesOp(3, color=Color.RED, list=(1, 2))
        SliceOp(m, [i, 4], out="vector<4xf32>")
        SliceOp(m, (0, 0), [1, i], out=ir.Type.parse("vector<4xf32>"))
        assert Toy.function("same")(b).type == b.type
        assert str(Toy.function("make_token")().type) == "!toy.token"
        SmallOp(Toy.function("small")(1).size)
    module.verify()
    printed = shape(module.text())
    for line in (
        "toy.groups % maybe %(%, %) : i32, (!toy.box<size = 2>, !toy.box<size = 2>) -> !toy.box<size = 4>, (i32) "
        "and !toy.token",
        "toy.attributes 3 {flag = true, list = [4], color = green, range = #toy.range<low = 0, high = 1>}",
        "toy.attributes 3 %",
        "toy.slice %[%, 4] : memref<8x8xf32> -> vector<4xf32>",
        "toy.slice %[0, 0] by [1, %] : memref<8x8xf32> -> vector<4xf32>",
        "toy.same % : !toy.box<size = 2>",
        "toy.small 1 toy.small 1",
    ):
        assert line in printed
    assert read(context, module.text()).text() == module.text()


def test_builder_makes_regions(context: Context) -> None:
    with context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            cases = CasesOp()
            assert len(cases.operation.regions) == 3
            assert len(cases.second.blocks) == 0


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda a, i, m: GroupsOp(3, [], out=Box(1), more=[]), TypeError, "'first' expects an SSA value, got 3"),
        (lambda a, i, m: GroupsOp(None, [], out=Box(1), more=[]), TypeError, "'first' expects an SSA value"),
        (lambda a, i, m: GroupsOp(a, [], more=[]), TypeError, "requires the result type as the argument 'out'"),
        (lambda a, i, m: GroupsOp(a, [], out=4, more=[]), TypeError, "'out' expects a type, got 4"),
        (lambda a, i, m: AttributesOp("x"), TypeError, "'number' of 'toy.attributes': expected an integer"),
        (lambda a, i, m: AttributesOp(True), TypeError, "'number' of 'toy.attributes'"),
        (lambda a, i, m: AttributesOp(1, flag=1), TypeError, "'flag' of 'toy.attributes': expected true or false"),
        (lambda a, i, m: AttributesOp(1, color="blue"), ValueError, "'color' of 'toy.attributes': .*red, green"),
        (lambda a, i, m: AttributesOp(1, color=3), TypeError, "'color' of 'toy.attributes'"),
        (lambda a, i, m: AttributesOp(1, list=3), TypeError, "'list' of 'toy.attributes': expected a list of integers"),
        (lambda a, i, m: AttributesOp(1, list=["a"]), TypeError, "'list' of 'toy.attributes'"),
        (lambda a, i, m: AttributesOp(1, range=3), TypeError, "'range' of 'toy.attributes'"),
        (lambda a, i, m: AttributesOp(1, text=3), TypeError, "'text' of 'toy.attributes': expected a string"),
        (lambda a, i, m: AttributesOp(1, nothing=3), TypeError, "nothing"),
        (lambda a, i, m: AttributesOp(), TypeError, "number"),
        (lambda a, i, m: SliceOp(m, ["x"], out="vector<4xf32>"), TypeError, "'offsets' expects an SSA value, got 'x'"),
    ],
)
def test_builder_refuses(context: Context, build: Any, error: type[Exception], message: str) -> None:
    module = read(context, f"{HEAD}return\n}}")
    block = module.body.operations[0].regions[0].blocks[0]
    a, i, m, _ = block.arguments
    with context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]), pytest.raises(error, match=message):
        build(a, i, m)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toy.attributes", r"2:15: error: expected an integer|3:1: error: expected an integer"),
        ("toy.attributes 1 {color = blue}", r"2:27: error: expected one of red, green, but got 'blue'"),
        ("toy.attributes 1 {colour = red}", r"2:19: error: 'toy.attributes' has no attribute 'colour'; did you mean"),
        ("toy.attributes 1 {range = #toy.range<low = 1>}", r"error: #toy.range needs high"),
        ("toy.attributes 1 {range = #toy.range<1 : i64>}", r"error: expected ','"),
        ("toy.attributes 1 {range = #toy.color<red>}", r"expected #toy.range attribute|expected #toy.range"),
        ("toy.attributes 1 {list = [1, x]}", r"2:26: error: expected an integer, but got 'x'"),
        (
            "toy.small 10",
            r"2:1: error: 'toy.small' op size must be below 10, but got 10\n.*\n.*\n.*note: sizes have one",
        ),
        ('"toy.small"() {size = 10 : i64} : () -> ()', r"2:1: error: 'toy.small' op size must be below 10"),
        ('"toy.small"() : () -> ()', r'attribute "size" is expected but not provided'),
        (
            '"toy.small"() {size = "x"} : () -> ()',
            r"expected base attribute 'builtin.integer' but got 'builtin.string'",
        ),
        ('"toy.small"() {size = 1 : i64, sise = 2 : i64} : () -> ()', r"has no attribute 'sise'; did you mean 'size'"),
        (
            '"toy.attributes"() {number = 1 : i64, flag = 3 : i64} : () -> ()',
            r"attribute 'flag': expected true or false",
        ),
        ("toy.identical %a", r"expected ':'"),
        ("toy.sam %a : i32", r"2:1: error: unknown operation 'toy.sam'; did you mean 'toy.same'"),
        ("%0 = toy.same %x : i32", r"2:15: error: use of undeclared SSA value name"),
        ("%0 = toy.same %a : i64", r"2:15: error: use of value '%a' expects different type than prior uses"),
        ("%0 = toy.same %a : !toy.bux<size = 1>", r"unknown type '!toy.bux'; did you mean '!toy.box'"),
        ("%0 = toy.region %a : i32 -> i32", r"expected region 'body'"),
        ("%0 = toy.region %a { toy.smal 1 } : i32 -> i32", r"2:22: error: unknown operation 'toy.smal'"),
        (
            '"toy.slice"(%m, %i) {operandSegmentSizes = array<i32: 1, 1, 0>, static_offsets = array<i64: 1>} '
            ": (memref<8x8xf32>, index) -> vector<4xf32>",
            "'static_offsets' has 0 dynamic entries, but there are 1 operands",
        ),
    ],
)
def test_diagnostics(context: Context, text: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        read(context, f"{HEAD}{text}\nreturn\n}}")


def test_comments_in_values_do_not_hide_what_follows(context: Context) -> None:
    text = "toy.attributes 1 {a.b = [1, // one\n 2] // two\n, c.d = 3 // three\n} // four\nreturn\n}"
    assert "toy.attributes 1 {a.b = [1, 2], c.d = 3 : i64}" in read(context, HEAD + text).text()
    text = "%0 = toy.same %m : memref<8x // rows\n 8xf32> // matrix\nreturn\n}"
    assert "toy.same %arg2 : memref<8x8xf32>" in read(context, HEAD + text).text()


def test_faults_in_nested_texts_are_located(context: Context) -> None:
    with pytest.raises(DiagnosticError, match=r"2:34: error: unknown type '!toy.bux'"):
        read(context, f"{HEAD}toy.attributes 1 {{a.b = [1, i32, !toy.bux<size = 1>]}}\nreturn\n}}")
    with pytest.raises(DiagnosticError, match=r"2:26: error: unknown type '!toy.bux'"):
        read(context, f"{HEAD}%0 = toy.same %b : tuple<i32, !toy.bux<size = 1>>\nreturn\n}}".replace("i32, !", "!"))


def test_invalid_ops_print_in_generic_form(context: Context) -> None:
    printer = Printer([Toy])
    for line in (
        '%0 = "toy.slice"(%1, %2) {operandSegmentSizes = array<i32: 1, 1, 1>} : (f32, index) -> vector<4xf32>',
        '"toy.attributes"() {color = 3 : i64, number = 1 : i64} : () -> ()',
        '"toy.attributes"() : () -> ()',
        '"toy.slice"(%1, %2) {operandSegmentSizes = array<i32: 1, 1, 0>, static_offsets = array<i64: 1>} '
        ": (f32, index) -> f32",
        '%0 = "toy.region"(%a, %b) ({\n  "toy.attributes"() : () -> ()\n}) : (i32, i32) -> i32',
        '"toy.cases"() ({\n}, {\n  "toy.attributes"() : () -> ()\n}, {\n}) {first = 1 : i64} : (i32) -> ()',
    ):
        assert printer.rewrite(line) == line
    text = '"toy.small"() {size = 1 : i64} : () -> i32'
    assert Printer([Toy]).rewrite(text) == text


def test_definitions_that_cannot_be() -> None:
    with pytest.raises(TypeError, match="cannot be named 'name'"):

        class Bad(Attr, dialect=Toy, name="bad"):
            name: str

    with pytest.raises(TypeError, match="cannot be named 'operands'"):

        class BadOp(Operation, dialect=Toy, name="bad"):
            operands: Operand[Any]

    with pytest.raises(TypeError, match="must not be variadic in an IRDL op"):

        class WorstOp(Operation, dialect=Toy, name="worst"):
            regions_of_any_number: Sequence[Region]

    with pytest.raises(TypeError, match="must be an operand, result, attribute or region"):

        class WorseOp(Operation, dialect=Toy, name="worse"):
            thing: int

    with pytest.raises(TypeError, match="no attribute codec stands for <class 'complex'>"):

        class OddOp(Operation, dialect=Toy, name="odd"):
            odd: Attribute[complex]


def test_values_of_types_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        Box(1).size = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match=re.escape("expected 1 parameters in !toy.box<1, 2>")):
        Box.decode("!toy.box<1, 2>")


@pytest.mark.needs("mlir-opt")
def test_irdl_loads_in_stock_mlir_opt(context: Context, tmp_path: Path) -> None:
    tool = external_tools.find("mlir-opt")
    definition = tmp_path / "toy.irdl.mlir"
    definition.write_text(dump(Toy))
    source = tmp_path / "in.mlir"
    source.write_text(
        "\n".join(read(context, f"{HEAD}{t}\nreturn\n}}").text(generic=True) + "\n// -----" for t in ROUND_TRIPS)
    )
    done = subprocess.run(
        [tool, f"--irdl-file={definition}", "--split-input-file", source], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert read(context, done.stdout.split("// -----")[0]).text().count("toy.groups") == 1


class Gentle(Interface):
    """Is done gently, or not."""

    gently: Attribute[bool] = default(True)


def test_an_interface_gives_an_op_fields_and_is_known_of_its_ops():
    class Crane(Dialect, name="crane"):
        """Cranes."""

    class LiftOp(Operation, dialect=Crane, name="lift", interfaces=(Gentle,)):
        """Lifts a box."""

        value: Operand[Any]
        out: Result[Any]
        same_type = ("out", "value")
        assembly_format = "$value attr-dict `:` type($value)"

    assert [*LiftOp.spec.attributes] == ["gently"] and LiftOp.spec.order == ["value", "out", "gently"]
    assert issubclass(LiftOp, Gentle) and not issubclass(Operation, Gentle)


def test_objects_of_attributes_are_values() -> None:
    """They are compared and hashed by their parameters, cannot be assigned to, and take no others."""
    span = Range(1, high=2)
    assert span == Range(low=1, high=2) != Range(1, 3)
    assert hash(span) == hash(Range(1, 2))
    assert repr(span) == "Range(low=1, high=2)"
    assert dataclasses.replace(span, low=0) == Range(0, 2)
    assert pickle.loads(pickle.dumps(span)) == span
    with pytest.raises(dataclasses.FrozenInstanceError):
        span.low = 3  # type: ignore[misc]
    for args, kwargs in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"low": 1}), ((1,), {"height": 2}), ((), {})):
        with pytest.raises(TypeError, match="Range takes the parameters low, high"):
            Range(*args, **kwargs)
