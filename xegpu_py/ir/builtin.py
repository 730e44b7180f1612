"""Upstream's types, constants, calls and formats, and the constraints on operands' types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, Union, get_args, get_origin

import numpy as np
from mlir import ir

from xegpu_py.deferred import pattern
from xegpu_py.numerics.formats import FLOATS

# Properties of builtin types, most of them read from the text of the type.

_VECTOR = pattern(r"vector<((?:\s*\d+\s*x)*)\s*(.*)>", re.DOTALL)

_INTEGER = re.compile(r"([su]?)i(\d+)")

_FLOAT = re.compile(r"b?f(\d+)(?:E\w+)?")

_NAMED_FLOATS = {"tf32": 32}


@lru_cache(maxsize=4096)
def vector_of(text: str) -> tuple[tuple[int, ...], str]:
    """The shape and element type of a vector type.

    Raises:
        ValueError: if the text is not a vector of fixed size.
    """
    m = _VECTOR.fullmatch(text)
    if not m or "[" in text:
        raise ValueError(f"expected a vector of fixed size, but got {text}")
    return tuple(int(n) for n in re.findall(r"\d+", m[1])), m[2].strip()


def vector_text(shape: Sequence[int], element: str) -> str:
    """The text of a vector type."""
    return f"vector<{'x'.join(map(str, (*shape, element)))}>"


def is_integer(element: str) -> bool:
    """Whether this is an integer type."""
    return _INTEGER.fullmatch(element) is not None


def is_float(element: str) -> bool:
    """Whether this is a floating-point type."""
    return element in _NAMED_FLOATS or _FLOAT.fullmatch(element) is not None


def keeps_bits(a: ir.Type, b: ir.Type) -> bool:
    """Whether types, of numbers, vectors or memrefs, have integers of one width, whatever their signs."""
    of = (ir.VectorType, ir.MemRefType)
    element_types = [type_.element_type if isinstance(type_, of) else type_ for type_ in (a, b)]
    return (
        isinstance(a, ir.MemRefType) == isinstance(b, ir.MemRefType)
        and all(isinstance(e, ir.IntegerType) for e in element_types)
        and element_types[0].width == element_types[1].width
    )


def signedness(element: str) -> str:
    """`s`, `u`, or nothing for a signless integer."""
    m = _INTEGER.fullmatch(element)
    return m[1] if m else ""


@lru_cache(maxsize=256)
def bit_width(element: str) -> int:
    """The bits that an element takes in a register or in memory; tf32 takes 32.

    Raises:
        ValueError: if the type is neither integer nor floating point.
    """
    if element in _NAMED_FLOATS:
        return _NAMED_FLOATS[element]
    m = _INTEGER.fullmatch(element)
    if m:
        return int(m[2])
    m = _FLOAT.fullmatch(element)
    if m:
        return int(m[1])
    raise ValueError(f"expected an integer or floating-point type, but got {element}")


def by(sizes: Sequence[object]) -> str:
    """Dimensions as in `8x16`."""
    return "x".join(map(str, sizes))


def enumerator(attribute: object) -> str:
    """The name of the enumerator of an attribute such as `#vector.kind<add>` or `#gpu<dim x>`."""
    return str(attribute).rstrip(">").replace("<", " ").split()[-1]


def enum_attribute(name: str, enumerator: str) -> ir.Attribute:
    """Upstream's attribute of an enumerator: that of `gpu.dim` and `x` is `#gpu<dim x>`."""
    dialect, _, mnemonic = name.partition(".")
    return ir.Attribute.parse(f"#{dialect}<{mnemonic} {enumerator}>")


def element_type(name: str) -> ir.Type:
    """The type of numbers of a name, such as f32, in the current MLIR context."""
    return ir.Type.parse(name)


def strides_of(memref: ir.MemRefType) -> list[int] | None:
    """The memref's strides, `DYNAMIC` where unknown; None for a layout without strides."""
    try:
        return list(memref.get_strides_and_offset()[0])
    except (ValueError, RuntimeError):
        return None


# Attributes of numbers: of scalar types, and of vectors whose elements are all equal.

ROUNDING = "roundingmode"
"""The attribute of ops of arith that round."""

NEAREST = 0
"""Its number for rounding to nearest even, which ops without the attribute do."""

_MODES = ("to nearest even", "downward", "upward", "toward zero", "to nearest, ties away from zero")


def number_attribute(type_: ir.Type, number: float) -> ir.Attribute:
    """A number as one of this type, rounded to nearest even; infinities and NaN are numbers of floating-point types."""
    shaped = isinstance(type_, ir.ShapedType)
    element = ir.ShapedType(type_).element_type if shaped else type_
    scalar: ir.Attribute
    if isinstance(element, ir.FloatType):
        scalar = ir.FloatAttr.get(element, number)
    else:
        # As a signed number, a single set bit is -1.
        single = isinstance(element, ir.IntegerType) and element.width == 1
        # Sums of constants wrap around, as those of numbers of the run do.
        wrapped = (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)
        scalar = ir.IntegerAttr.get(element, -(int(number) & 1) if single else wrapped)
    return ir.DenseElementsAttr.get_splat(type_, scalar) if shaped else scalar


def number_of(text: str) -> float:
    """The number that an attribute such as `1.0 : f32` or `0xFF800000 : f32` stands for.

    Raises:
        ValueError: if the text is no such attribute.
    """
    try:
        attribute = ir.Attribute.parse(text)
    except ir.MLIRError as e:
        raise ValueError(f"'{text}' is not a number") from e
    return (
        float(ir.FloatAttr(attribute).value) if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr(attribute).value
    )


def rounding_mode(op: ir.Operation) -> int:
    """The number of the mode by which an op rounds."""
    return ir.IntegerAttr(op.attributes[ROUNDING]).value if ROUNDING in op.attributes else NEAREST


def rounding_problem(op: ir.Operation) -> tuple[str, str] | None:
    """The reason why an op of arith that rounds is not supported; None if it is."""
    mode = rounding_mode(op)
    if mode == NEAREST:
        return None
    return f"rounds {_MODES[mode]}, which is not supported", "ops without a rounding mode round to nearest even"


# Dense constants of any element type; MLIR's Python bindings read only some types.

_BUFFERED = ("f16", "f32", "f64")

_READ_WIDTHS = (1, 8, 16, 32, 64)
"""Widths of integers whose constants the bindings read."""

_HEX = pattern(r'dense<"0x([0-9A-Fa-f]*)">')

_NUMBER = pattern(r"-?[\w.][\w.+-]*")


def integer_elements(attribute: ir.DenseIntElementsAttr) -> list[int]:
    """The integers of a dense constant in row-major order; those of type index with a sign."""
    element = ir.ShapedType(attribute.type).element_type
    if isinstance(element, ir.IndexType):
        return [n - (1 << 64) if n >> 63 else n for n in map(int, attribute)]
    if element.width in _READ_WIDTHS:
        return [int(n) for n in attribute]
    return [ir.IntegerAttr(n).value for n in dense_elements(attribute)]


def dense_elements(attribute: ir.DenseElementsAttr) -> list[ir.Attribute]:
    """The elements of a dense constant in row-major order, each with all its bits, those of a NaN too."""
    shaped_type = ir.ShapedType(attribute.type)
    element, count = shaped_type.element_type, math.prod(shaped_type.shape)
    if attribute.is_splat:
        return [attribute.get_splat_value()] * count
    if isinstance(element, ir.IndexType) or (isinstance(element, ir.IntegerType) and element.width in _READ_WIDTHS):
        return [ir.IntegerAttr.get(element, n) for n in integer_elements(ir.DenseIntElementsAttr(attribute))]
    numbers: list[str]
    if str(element) in _BUFFERED:
        buffer: Any = attribute
        bits = np.array(memoryview(buffer)).ravel()
        numbers = [f"0x{int(b):0{2 * bits.itemsize}X}" for b in bits.view(f"u{bits.itemsize}")]
    else:
        text = str(attribute)
        match = _HEX.match(text)
        if match:
            data = bytes.fromhex(match[1])
            size = len(data) // count
            numbers = [f"0x{data[i : i + size][::-1].hex()}" for i in range(0, len(data), size)]
        else:
            numbers = _NUMBER.findall(text[len("dense<") : text.rindex(">", 0, text.rindex(":"))])
    if isinstance(element, ir.IntegerType):
        mask, top = (1 << element.width) - 1, 0 if element.is_unsigned else 1 << element.width - 1
        return [ir.IntegerAttr.get(element, ((int(n, 0) & mask) ^ top) - top) for n in numbers]
    return [ir.Attribute.parse(f"{n} : {element}") for n in numbers]


# Memoised decoding of MLIR's types and attributes.

T = TypeVar("T")


class Decoded(dict[Any, T], Generic[T]):
    """Results of a function of types or attributes, memoised by the object: `decoded[type]`.

    Looking up an object takes a fraction of printing it. Results are kept for one context at a time, since an object
    keeps its context alive.
    """

    _memos: ClassVar[list[Decoded[Any]]] = []

    def __init__(self, decode: Callable[[Any], T]) -> None:
        """Start without memoised results.

        Args:
            decode: the function of an `ir.Type` or `ir.Attribute`. Its exceptions are not cached.
        """
        super().__init__()
        self._decode = decode
        self._context: Any = None
        self._memos.append(self)

    @classmethod
    def forget_all(cls) -> None:
        """Drop all results, and with them the references to their contexts."""
        for decoded in cls._memos:
            decoded.clear()
            decoded._context = None

    def __missing__(self, key: Any) -> T:
        decoded = self._decode(key)
        if key.context != self._context:
            self.clear()
            self._context = key.context
        self[key] = decoded
        return decoded


_SHAPES: Decoded[tuple[int, ...]] = Decoded(lambda kind: tuple(kind.shape) if isinstance(kind, ir.VectorType) else ())


def shape_of(value: ir.Value | ir.Type) -> tuple[int, ...]:
    """The shape of a vector or vector type; () for others."""
    return _SHAPES[value.type if isinstance(value, ir.Value) else value]


_SHAPES_AND_ELEMENTS = Decoded(
    lambda kind: (shape_of(kind), str(kind.element_type if isinstance(kind, ir.VectorType) else kind))
)


def shape_and_element(value: ir.Value | ir.Type) -> tuple[tuple[int, ...], str]:
    """The shape and element type of a vector or vector type; the shape of a scalar is ()."""
    return _SHAPES_AND_ELEMENTS[value.type if isinstance(value, ir.Value) else value]


def integers(attribute: ir.Attribute) -> list[int]:
    """The integers of an array attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        return [a.value for a in attribute]
    return list(attribute)


_PARALLEL, _REDUCED = "#vector.iterator_type<parallel>", "#vector.iterator_type<reduction>"

MATRIX_PRODUCT = {
    "indexing_maps": f"[{', '.join(f'affine_map<(m, n, k) -> ({dims})>' for dims in ('m, k', 'k, n', 'm, n'))}]",
    "iterator_types": f"[{_PARALLEL}, {_PARALLEL}, {_REDUCED}]",
    "kind": "#vector.kind<add>",
}
"""The attributes of a `vector.contract` that adds the product of two matrices to a third one."""

# Combining functions of reductions and atomic updates.


class CombiningKind(str, Enum):
    """The combining function of a reduction. Values are the names of `#vector.kind`."""

    ADD = "add"
    MUL = "mul"
    MINUI = "minui"
    MINSI = "minsi"
    MINNUMF = "minnumf"
    MINIMUMF = "minimumf"
    MAXUI = "maxui"
    MAXSI = "maxsi"
    MAXNUMF = "maxnumf"
    MAXIMUMF = "maximumf"
    AND = "and"
    OR = "or"
    XOR = "xor"

    @classmethod
    def of(cls, op: ir.Operation, name: str = "kind") -> CombiningKind:
        """The kind that an op's attribute names, such as `#vector.kind<add>` or `#gpu<all_reduce_op add>`."""
        return cls(enumerator(op.attributes[name]))

    @classmethod
    def of_atomic(cls, kind_name: str) -> CombiningKind:
        """The kind by the name of one of arith's `AtomicRMWKind` other than `assign`, or of an op of arith."""
        return _ATOMIC.get(kind_name) or cls(kind_name)

    @property
    def attribute(self) -> ir.Attribute:
        """The attribute `#vector.kind`."""
        return ir.Attribute.parse(f"#vector.kind<{self.value}>")

    def scalar_op(self, element: ir.Type) -> str:
        """The op that combines two elements of a type, or vectors of them; "" if the kind does not support the type."""
        is_float = isinstance(element, ir.FloatType)
        if self in (CombiningKind.ADD, CombiningKind.MUL):
            return f"arith.{self.value}{'f' if is_float else 'i'}"
        if self in (CombiningKind.AND, CombiningKind.OR, CombiningKind.XOR):
            return "" if is_float else f"arith.{self.value}i"
        return f"arith.{self.value}" if self.value.endswith("f") == is_float else ""

    def identity(self, element: ir.Type) -> ir.Attribute:
        """The identity element: combined with any element, NaN and signed zeros included, it gives that element.

        For minnumf and maxnumf, which prefer numbers, it is NaN, so that a reduction of only NaN is NaN.
        """
        if isinstance(element, ir.FloatType):
            greatest = FLOATS[str(element)].greatest
            values = {"add": -0.0, "mul": 1.0, "minimumf": greatest, "maximumf": -greatest}
            return ir.FloatAttr.get(element, values.get(self.value, math.nan))
        bits = 64 if isinstance(element, ir.IndexType) else ir.IntegerType(element).width
        top = 1 << (bits - 1)
        numbers = {"mul": 1, "and": -1, "minui": -1, "minsi": top - 1, "maxsi": -top}
        number = numbers.get(self.value, 0)
        # As a signed number, a single set bit is -1.
        return ir.IntegerAttr.get(element, -(number & 1) if bits == 1 else number)

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combine two numbers, or two vectors elementwise."""
        element = a.type.element_type if isinstance(a.type, ir.VectorType) else a.type
        return ir.Operation.create(self.scalar_op(element), [a.type], [a, b]).results[0]

    def reduce(self, vector: ir.Value) -> ir.Value:
        """Reduce the elements of a vector of one dimension."""
        keywords = {"kind": self.attribute}
        return ir.Operation.create("vector.reduction", [vector.type.element_type], [vector], keywords).results[0]

    def is_sequential(self, op: ir.Operation) -> bool:
        """Whether a reduction of this kind combines its elements by increasing index, as its module may say.

        The order matters for sums and products of floats only; other kinds keep the usual one.
        """
        if self not in (CombiningKind.ADD, CombiningKind.MUL):
            return False
        kind = op.results[0].type
        if not isinstance(kind.element_type if isinstance(kind, ir.ShapedType) else kind, ir.FloatType):
            return False
        at: Any = op
        while at is not None:
            if REDUCTION_ORDER in at.attributes:
                return bool(ir.StringAttr(at.attributes[REDUCTION_ORDER]).value == "sequential")
            at = at.parent and at.parent.operation
        return False


REDUCTION_ORDER = "xegpu.reduction_order"
"""An attribute of modules: the alternative of the choice `reduction-order` by which their reductions combine."""


_ATOMIC = {
    **{f"{kind.value}{suffix}": kind for kind in (CombiningKind.ADD, CombiningKind.MUL) for suffix in "fi"},
    **{f"{kind.value}i": kind for kind in (CombiningKind.AND, CombiningKind.OR, CombiningKind.XOR)},
    **{kind.value.removesuffix("i"): kind for kind in CombiningKind if kind.value.startswith(("min", "max"))},
}
"""The kinds by name of arith's `AtomicRMWKind`: `maxs` is maxsi, `addf` and `addi` are add."""


# Format strings of `gpu.printf`: those of C's printf, for integers and floating-point numbers.

_CONVERSION = pattern(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?:hh|h|ll|l|j|z|t|L)?(?P<kind>[a-zA-Z%])?"
)

_INTEGERS, _FLOATS = "diouxXcp", "eEfFgGaA"


def check_format(text: str, elements: Sequence[str]) -> None:
    """Check that a format fits its operands.

    Args:
        text: the format.
        elements: MLIR's types of the operands.

    Raises:
        ValueError: if it does not.
    """
    conversions = [m for m in _CONVERSION.finditer(text) if m["kind"] != "%"]
    for m in conversions:
        if m["kind"] is None or m["kind"] not in _INTEGERS + _FLOATS:
            known = ", ".join(f"%{c}" for c in _INTEGERS + _FLOATS)
            raise ValueError(f"'{m[0]}' is not a supported conversion; expected one of {known}")
    if len(conversions) != len(elements):
        raise ValueError(f"the format has {len(conversions)} conversions, but there are {len(elements)} operands")
    for m, element in zip(conversions, elements):
        if is_float(element) != (m["kind"] in _FLOATS):
            expected_type = "a floating-point number" if m["kind"] in _FLOATS else "an integer"
            raise ValueError(f"'{m[0]}' requires {expected_type}, but got {element}")


def formatted(text: str, elements: Sequence[str], values: Sequence[int | float]) -> str:
    """The text that a format makes of numbers.

    Args:
        text: a format that fits, see `check_format`.
        elements: MLIR's types of the numbers; integers of 64 bits for `index`.
        values: the numbers; integers may have any sign.
    """
    arguments = iter(zip(elements, values))
    return _CONVERSION.sub(lambda m: "%" if m["kind"] == "%" else _convert(m, arguments), text)


def _convert(match: re.Match[str], arguments: Iterator[tuple[str, int | float]]) -> str:
    element, value = next(arguments)
    flags, conversion = match["flags"], match["kind"]
    if conversion in _FLOATS and not math.isfinite(value):
        # Unlike Python, C pads infinities and NaNs with spaces.
        flags = flags.replace("0", "")
    form = f"%{flags}{match['width']}{match['precision'] or ''}"
    if conversion in _FLOATS:
        number = float(value)
        if conversion in "aA" and math.isfinite(number):
            text = _hexadecimal(number, flags, int(match["width"] or 0), match["precision"])
            return text.upper() if conversion == "A" else text
        conversion = {"a": "f", "A": "F"}.get(conversion, conversion)
        return (form + conversion) % number
    bits = 64 if element == "index" else bit_width(element)
    unsigned = int(value) & ((1 << bits) - 1)
    if conversion == "c":
        return f"%{flags}{match['width']}s" % chr(unsigned & 0xFF)
    if conversion == "p":
        return f"%{flags}{match['width']}s" % f"{unsigned:#x}"
    signed = unsigned - ((unsigned >> (bits - 1)) << bits) if bits > 1 else unsigned
    if conversion in "di":
        return (form + "d") % signed
    # Python signs these too.
    unsigned_flags = flags.replace("+", "").replace(" ", "")
    return (
        f"%{unsigned_flags}{match['width']}{match['precision'] or ''}{'d' if conversion == 'u' else conversion}"
        % unsigned
    )


def _hexadecimal(number: float, flags: str, width: int, precision: str | None) -> str:
    """A finite number as `%a` prints it."""
    mantissa, _, exponent = abs(number).hex()[2:].partition("p")
    lead, _, fraction = mantissa.partition(".")
    if precision is None:
        fraction = fraction.rstrip("0")
    else:
        count = int(precision[1:] or 0)
        digits = fraction.ljust(count, "0")
        rounded, rest = int(lead + digits[:count], 16), digits[count:]
        half = "8".ljust(len(rest), "0")
        # To the nearest, in the middle to the even one.
        rounded += bool(rest) and (rest > half or (rest == half and rounded % 2 == 1))
        text = f"{rounded:0{count + 1}x}"
        lead, fraction = text[: len(text) - count], text[len(text) - count :]
    point = "." if fraction or "#" in flags else ""
    negative = math.copysign(1, number) < 0
    sign = "-" if negative else next((c for c in "+ " if c in flags), "")
    text = f"{lead}{point}{fraction}p{exponent}"
    if "0" in flags and "-" not in flags:
        text = text.rjust(width - len(f"{sign}0x"), "0")
    text = f"{sign}0x{text}"
    return text.ljust(width) if "-" in flags else text.rjust(width)


# Calls of functions without a body, which stand for single instructions or for formulas.

INLINE = "visa.inline"
"""The name of calls that are instructions of vISA."""

PRINT = "visa.print"
"""The name of calls that print for each lane, or each element of a tile, of a mask, their first operand. `TEXT` is the
format of the others, scalars or vectors of the mask's shape."""

TEXT = "visa.text"
"""The attribute of a call that has the instructions, as `inline_visa` takes them, or a format."""

FORMULA = "xegpu.formula"
"""The name of calls that are formulas of f64, before a function of `numerics.special_functions`: `xegpu.formula.j0`."""

INTRINSICS = ("llvm.genx.", f"{INLINE}.", f"{FORMULA}.")
"""Prefixes of the names of such functions. Their calls work element by element, and have no effect."""


def is_intrinsic(op: ir.Operation) -> bool:
    """Whether an op is such a call."""
    return bool(op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value.startswith(INTRINSICS))


def is_print(op: ir.Operation) -> bool:
    """Whether an op is a call that prints for each lane."""
    return bool(op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value.startswith(PRINT))


def call_external(
    name: str, result: ir.Type | None, *operands: ir.Value, attributes: Mapping[str, ir.Attribute] | None = None
) -> Any:
    """A call of a function without a body, which is declared for these types if it is not.

    Args:
        name: the function's name, to which a suffix for the types is added.
        result: the type of what it gives; None if it gives nothing.
        operands: the arguments.
        attributes: further attributes of the call.
    """
    # The module registers the classes of its ops, which takes 0.6 ms.
    from mlir.dialects import func

    operand_types = [v.type for v in operands]
    results = [] if result is None else [result]
    symbol = f"{name}.{_suffix(*results, *operand_types)}"
    table = _table()
    with ir.Location.unknown():
        for op in table.operations:
            if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
                break
        else:
            with ir.InsertionPoint.at_block_begin(table):
                func.FuncOp(symbol, (operand_types, results), visibility="private")
    call = func.CallOp(results, symbol, list(operands))
    for key, attribute in (attributes or {}).items():
        call.operation.attributes[key] = attribute
    return call.results[0] if results else None


def call_with_types(op: ir.Operation, operands: list[ir.Value], results: list[ir.Type]) -> list[ir.Value]:
    """The results of a call of the same function with operands of other types."""
    symbol: str = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    suffix = _suffix(*(v.type for v in (*op.results, *op.operands)))
    kept_attributes = {n: op.attributes[n] for n in op.attributes if n not in ("callee", "map")}
    result = results[0] if results else None
    value = call_external(symbol.removesuffix(f".{suffix}"), result, *operands, attributes=kept_attributes)
    return [value] if results else []


def _suffix(*types: ir.Type) -> str:
    return "_".join("".join(c for c in str(type_) if c.isalnum()) for type_ in types)


def _table() -> ir.Block:
    """The body of the module around the current insertion point."""
    owner: Any = ir.InsertionPoint.current.block.owner
    while owner.operation.name not in ("gpu.module", "builtin.module"):
        owner = owner.operation.parent
    return owner.operation.regions[0].blocks[0]


# Constraints on the types of operands and results.


class ConstraintEmitter(Protocol):
    """Collects IRDL constraint operations.

    Attributes:
        words: whether they list the words and numbers that an attribute may have.
    """

    words: bool

    def constraint(self, text: str) -> str:
        """Add the constraint operation `text`; the name of its SSA value."""

    def any_of(self, names: list[str]) -> str:
        """The value of a constraint that any of the constraints `names` satisfies."""


class TypeConstraint:
    """A set of types; this one is the set of all types.

    Attributes:
        summary: the name of a type of the set in diagnostics and reference pages.
        fixed: the one type of the set in MLIR's own spelling, where there is just one.
    """

    summary: ClassVar[str] = "any type"
    fixed: ClassVar[str | None] = None
    _pattern: ClassVar[str] = r".*"
    _irdl: ClassVar[str] = "irdl.any"

    @classmethod
    def accepts(cls, text: str) -> bool:
        """Whether the type of this spelling (MLIR's own) is in the set."""
        return re.fullmatch(cls._pattern, text, re.DOTALL) is not None

    @classmethod
    def irdl(cls, emitter: ConstraintEmitter) -> str:
        """Emit an IRDL constraint that holds the set, or the smallest larger set that IRDL can express."""
        return emitter.constraint(cls._irdl)


class OneOf(TypeConstraint):
    """One of some types without parameters, by their `names`."""

    names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def accepts(cls, text: str) -> bool:
        return text in cls.names

    @classmethod
    def irdl(cls, emitter: ConstraintEmitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {name}") for name in cls.names])


class Vector(TypeConstraint):
    """Vectors of fixed size."""

    summary = "vector"
    _pattern = r"vector<[^\[\]]*>"
    _irdl = 'irdl.base "!builtin.vector"'


class MaskVector(Vector):
    """Vectors of i1."""

    summary = "vector of i1"
    _pattern = r"vector<(?:\s*\d+\s*x)+\s*i1\s*>"


class OffsetVector(Vector):
    """Vectors of index or integer."""

    summary = "vector of index or integer"
    _pattern = r"vector<(?:\s*\d+\s*x)+\s*(?:index|[su]?i\d+)\s*>"


class MemRef(TypeConstraint):
    """Ranked memory references."""

    summary = "memref"
    _pattern = r"memref<.*>"
    _irdl = 'irdl.base "!builtin.memref"'


class Integer(TypeConstraint):
    """Integers of any width and sign."""

    summary = "integer"
    _pattern = r"[su]?i\d+"
    _irdl = 'irdl.base "!builtin.integer"'


class Index(TypeConstraint):
    """The type `index`."""

    summary = "index"
    fixed = "index"
    _pattern = r"index"
    _irdl = "irdl.is index"


def alternatives(annotation: Any) -> tuple[type[TypeConstraint], ...]:
    """The constraints of an annotation `A | B`, of a single one, or of `Any`.

    Raises:
        TypeError: if something else than constraints stands there.
    """
    members = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)
    constraints = tuple(TypeConstraint if m is Any else m for m in members)
    for m in constraints:
        if not (isinstance(m, type) and issubclass(m, TypeConstraint)):
            raise TypeError(f"{m!r} is not a type constraint")
    return constraints
