"""The XeGPU dialect, its attributes and types, interfaces, and the rules that its ops share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.spelling import Spelling, mixture, spelling_of
from xegpu_py.ir.builtin import (
    OneOf,
    bit_width,
    by,
    is_float,
    is_integer,
    shape_and_element,
    shape_of,
    vector_text,
)
from xegpu_py.ir.codecs import Cursor, Scope, TypeText, register_int_enum
from xegpu_py.ir.definition import Attr, Attribute, Dialect, Interface, Type, enum_attr

# The dialect itself, its enums, attributes and types.

LANES = (1, 2, 4, 8, 16, 32)
"""Work items (SIMD lanes) that a scattered descriptor may have (RFC, create_tdesc)."""

CHUNK_SIZES = (1, 2, 3, 4, 8)
"""Elements that one lane of a scattered descriptor may access (RFC, chunk_size_per_lane)."""


class XeGPU(Dialect, name="xegpu"):
    """Operations that match the instructions of Intel Xe GPUs: DPAS, 2D block messages, gather and scatter, barriers.

    It works with memref and vector types and complements arith, math, vector and memref. The matrix sizes are those
    of the hardware, and most ops lower to one instruction. An op works either in SIMT mode (the default), where each
    work item holds the fragment of a block that the descriptor's `sg_map` assigns to it, or in vector compute mode
    (`mode = vc`), where the subgroup works on the whole block.
    """

    spellings = ("XeGPU", "XeGpu")
    attribute_spellings: ClassVar = {"l1": "l1_hint", "l2": "l2_hint", "l3": "l3_hint"}
    type_names: ClassVar = {
        "Vector": "vector",
        **{f"uint{n}": f"ui{n}" for n in (8, 16, 32, 64)},
        **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
        **{f"fp{n}": f"f{n}" for n in (16, 32, 64)},
        "Uint8_t": "ui8",
        "float": "f32",
    }

    @classmethod
    def variant(cls, text: str) -> str | None:
        return "xegpu.upstream_ops" if spelling_of(text) == Spelling.UPSTREAM else None

    @classmethod
    def doubt(cls, text: str) -> tuple[int, str] | None:
        return mixture(text)


DIALECT = XeGPU


@enum_attr(XeGPU, "mode")
class Mode(str, Enum):
    """How an op works: per work item, or on the whole vector with all work items of the subgroup (RFC, mode)."""

    SIMT = "simt"
    VC = "vc"


@enum_attr(XeGPU, "cache_hint")
class CacheHint(str, Enum):
    """The behaviour of a cache level for an access (RFC, L1_hint). Reads and writes each know four of them."""

    CACHED = "cached"
    UNCACHED = "uncached"
    STREAMING = "streaming"
    READ_INVALIDATE = "read_invalidate"
    WRITE_THROUGH = "write_through"
    WRITE_BACK = "write_back"


READ_HINTS = (CacheHint.CACHED, CacheHint.UNCACHED, CacheHint.STREAMING, CacheHint.READ_INVALIDATE)

WRITE_HINTS = (CacheHint.UNCACHED, CacheHint.WRITE_THROUGH, CacheHint.WRITE_BACK, CacheHint.STREAMING)


@enum_attr(XeGPU, "memory_scope")
class MemoryScope(str, Enum):
    """Where a descriptor's tensor lies: in global or in shared local memory (RFC, memory_scope)."""

    GLOBAL = "global"
    SLM = "slm"


@enum_attr(XeGPU, "fence_scope")
class FenceScope(str, Enum):
    """For whom a fence orders accesses: for the work group, or for the whole GPU (RFC, fence)."""

    WORKGROUP = "workgroup"
    GPU = "gpu"


@enum_attr(XeGPU, "memory_kind")
class MemoryKind(str, Enum):
    """The memory that a fence orders: global, or shared local memory (RFC, fence)."""

    GLOBAL = "global"
    SHARED = "shared"


@enum_attr(XeGPU, "hint")
class Hint(str, Enum):
    """A hint for a lower-level compiler: not to move instructions across this op (RFC, compile_hint)."""

    SCHEDULE_BARRIER = "schedule_barrier"


register_int_enum(AtomicRMWKind)


@dataclass(frozen=True)
class SgMap(Attr, dialect=XeGPU, name="sg_map"):
    """Distribution of the elements of a 2D block among the work items of a subgroup (RFC, sg_map).

    The work items form a grid of `wi_layout` rows and columns, and each owns a `wi_data` fragment of contiguous
    elements: part of a row, or a column of as many elements as VNNI packs into 32 bits. A block larger than
    `wi_layout` x `wi_data` is distributed round robin.

        #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>

    Older IMEX writes braces in the brackets, and `mma_block_size = [8, 16]` before `wi_layout`, which changes no value:
    both are read.
    """

    wi_layout: tuple[int, ...]
    wi_data: tuple[int, ...]

    spelled: ClassVar = {"mma_block_size": ""}

    @classmethod
    def read_body(cls, cursor: Cursor, scope: Scope) -> SgMap:
        if not cursor.accept("<{"):
            return super().read_body(cursor, scope)
        return cls.read_settings(cursor, scope, "}>")

    def problem(self) -> str | None:
        """The rule on maps alone that is broken."""
        for name, values in (("wi_layout", self.wi_layout), ("wi_data", self.wi_data)):
            if len(values) != 2 or min(values) < 1:
                return f"{name} must be two positive numbers, but got {list(values)}"
        return None

    def tile(self) -> tuple[int, int]:
        """Rows and columns that all work items own together in one round."""
        return self.wi_layout[0] * self.wi_data[0], self.wi_layout[1] * self.wi_data[1]


@dataclass(frozen=True)
class TdescAttr(Attr, dialect=XeGPU, name="tdesc_attr"):
    """Properties of a tensor descriptor besides its shape and element type (RFC, tdesc_attr).

    All of it may be left out. It is also read without this attribute around it, in the descriptor itself. Accesses to
    blocks of one dimension are never checked against bounds: their `boundary_check` is false by default.

    With `message`, each access is the one 2D block message that it says, as ops of XeVM are: the tensor's innermost
    extent and its pitch are in bytes, and no pass splits, joins or replaces the access. With `clipped`, elements
    outside of the tensor are those that a mask leaves out: the check `bounds` does not report them.

        #xegpu.tdesc_attr<memory_scope = slm, array_length = 2, boundary_check = false>
        #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>
        #xegpu.tdesc_attr<array_length = 2, map = <wi_layout = [1, 16], wi_data = [1, 1]>>
        #xegpu.scattered
    """

    memory_scope: MemoryScope = MemoryScope.GLOBAL
    array_length: int = 1
    boundary_check: bool = True
    scattered: bool = False
    map: SgMap | None = None
    message: bool = False
    clipped: bool = False

    @classmethod
    def read_body(cls, cursor: Cursor, scope: Scope) -> TdescAttr:
        cursor.expect("<")
        if cursor.at('#xegpu.memory_scope<"'):
            return cls._read_raw(cursor, scope)
        return _read_entries(cursor, scope)[0]

    def entries(self, print_defaults: bool = False) -> list[str]:
        """The settings as they are printed, those that have their default value left out."""
        shown = [
            (self.memory_scope != MemoryScope.GLOBAL, f"memory_scope = {self.memory_scope.value}"),
            (self.array_length != 1, f"array_length = {self.array_length}"),
            (not self.boundary_check, f"boundary_check = {str(self.boundary_check).lower()}"),
            (self.message, f"message = {str(self.message).lower()}"),
            (self.clipped, f"clipped = {str(self.clipped).lower()}"),
        ]
        out = [text for differs, text in shown if differs or print_defaults]
        if self.scattered:
            out.append("#xegpu.scattered")
        if self.map:
            out.append(f"map = {self.map.write_body()}")
        return out

    def write_body(self, print_defaults: bool = False) -> str:
        return f"<{', '.join(self.entries(print_defaults))}>"

    def write(self, print_defaults: bool = False) -> str:
        if self == SCATTERED and not print_defaults:
            return "#xegpu.scattered"
        return super().write(print_defaults)


SCATTERED = TdescAttr(scattered=True)

XeGPU.shorthands = {"scattered": SCATTERED}

_SETTINGS = {name: name for name in TdescAttr.parameters()} | {"sg": "map", "sg_map": "map"}


def _read_entries(cursor: Cursor, scope: Scope) -> tuple[TdescAttr, dict[str, Any]]:
    """Read descriptor settings and a closing bracket: `key = value`, and bare attributes that say what they are.

    The second result has what is given as `key = value` alone, and the chunk size.
    """
    given: dict[str, Any] = {}
    found: dict[str, Any] = {}

    def put(name: str, value: Any, offset: int) -> None:
        if name in found:
            raise cursor.fault(f"'{name}' is given twice", offset)
        found[name] = value

    kinds = TdescAttr.parameters()
    for start in cursor.entries(">"):
        if cursor.at("#"):
            _put_attribute(scope.resolve(scope.read_attribute(cursor)), put, cursor, start)
        else:
            key = cursor.word() or ""
            if key == "chunk_size_per_lane":
                cursor.expect("=")
                given[key] = cursor.integer()
            elif key in _SETTINGS:
                cursor.expect("=")
                name = _SETTINGS[key]
                given[name] = kinds[name].read(cursor, scope)
                put(name, given[name], start)
            else:
                raise cursor.fault(f"expected a parameter of a tensor descriptor ({', '.join(_SETTINGS)})", start)
    return TdescAttr(**found), given


def _put_attribute(raw: str, put: Any, cursor: Cursor, offset: int) -> None:
    if raw.lower() == "#scattered":
        put("scattered", True, offset)
    elif raw.startswith(SgMap.mnemonic() + "<"):
        put("map", SgMap.decode(raw), offset)
    elif raw.startswith(TdescAttr.mnemonic()):
        attr = TdescAttr.decode(raw)
        for name in TdescAttr.parameters():
            if getattr(attr, name) != getattr(TdescAttr(), name):
                put(name, getattr(attr, name), offset)
    else:
        raise cursor.fault(f"expected sg_map or tdesc_attr, but got '{raw}'", offset)


@dataclass(frozen=True)
class TensorDesc(Type, dialect=XeGPU, name="tensor_desc", also_named=("tile",)):
    """A descriptor of a block of a tensor in memory: where it lies, and for blocks the tensor's bounds.

    A descriptor is either of an n-dimensional block, or scattered: one address for each lane, and, if it has a second
    dimension, that many consecutive elements at each.

        !xegpu.tensor_desc<8x16xf32>
        !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>
        !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<memory_scope = slm, array_length = 2>>
        !xegpu.tensor_desc<16x8xf32, #xegpu.scattered>
    """

    shape: tuple[int, ...]
    element: TypeText
    attr: TdescAttr = TdescAttr()

    def __post_init__(self) -> None:
        if self._is_line():
            # The default of a block of one dimension is the one value that it may have.
            object.__setattr__(self, "attr", replace(self.attr, boundary_check=False))

    def __hash__(self) -> int:
        # Descriptors that differ only in other attributes are rare.
        return hash((self.shape, self.element))

    def _is_line(self) -> bool:
        return len(self.shape) == 1 and not self.attr.scattered

    @classmethod
    def read_body(cls, cursor: Cursor, scope: Scope) -> TensorDesc:
        cursor.expect("<")
        start = cursor.skip()
        if cursor.at("array"):
            found = cls._read_raw(cursor, scope)
        else:
            shape = cursor.dimensions("a tensor descriptor")
            element = scope.resolve(scope.read_type(cursor))
            if cursor.accept(","):
                attr, given = _read_entries(cursor, scope)
            else:
                attr, given = TdescAttr(), {}
                cursor.expect(">")
            found = cls(shape, element, attr)
            if given.get("boundary_check") and found._is_line():
                raise cursor.fault("a 1D tensor descriptor has no boundary check: boundary_check must be false", start)
            chunk = given.get("chunk_size_per_lane")
            if chunk is not None and chunk != found.chunk:
                raise cursor.fault(f"chunk_size_per_lane = {chunk} does not match the shape {by(shape)}", start)
        problem = found.problem()
        if problem:
            raise cursor.fault(problem, start)
        return found

    def write_body(self, print_defaults: bool = False) -> str:
        attr = replace(self.attr, boundary_check=True) if self._is_line() and not print_defaults else self.attr
        if not attr.entries(print_defaults):
            suffix = ""
        elif attr == TdescAttr(map=attr.map) and not print_defaults:
            suffix = f", {attr.map}"
        else:
            suffix = f", {attr.write(print_defaults)}"
        return f"<{by((*self.shape, self.element))}{suffix}>"

    @property
    def lanes(self) -> int:
        """Lanes of a scattered descriptor."""
        return self.shape[0]

    @property
    def chunk(self) -> int:
        """Consecutive elements at each lane of a scattered descriptor."""
        return self.shape[1] if len(self.shape) > 1 else 1

    @property
    def bits(self) -> int:
        """Width of an element in bits."""
        return bit_width(self.element)

    @property
    def in_slm(self) -> bool:
        """Whether it describes shared local memory."""
        return self.attr.memory_scope == MemoryScope.SLM

    def problem(self) -> str | None:
        """The rule on descriptors alone that is broken (RFC, sg_map, create_nd_tdesc and create_tdesc)."""
        attr = self.attr
        if not self.shape or min(self.shape) < 1:
            return f"a tensor descriptor must have positive dimensions, but got {by(self.shape) or 'none'}"
        if not (is_integer(self.element) or is_float(self.element)):
            return f"a tensor descriptor must have integer or floating-point elements, but got '{self.element}'"
        if attr.array_length < 1:
            return f"array_length must be positive, but got {attr.array_length}"
        if attr.scattered:
            return self._scattered_problem()
        if attr.array_length > 1 and len(self.shape) != 2:
            return "array_length requires a 2D descriptor"
        return self._map_problem(attr.map) if attr.map else None

    def _scattered_problem(self) -> str | None:
        if self.attr.map:
            return "a scattered tensor descriptor cannot have an sg_map: scattered access is available in VC mode only"
        if self.attr.array_length > 1:
            return "a scattered tensor descriptor cannot have an array_length"
        if len(self.shape) > 2:
            return f"a scattered tensor descriptor must be 1D (lanes) or 2D (lanes, chunk), but got {len(self.shape)}D"
        if self.lanes not in LANES:
            return f"a scattered tensor descriptor must have 1, 2, 4, 8, 16 or 32 lanes, but got {self.lanes}"
        if self.chunk not in CHUNK_SIZES:
            return f"the chunk of a lane must have 1, 2, 3, 4 or 8 elements, but got {self.chunk}"
        if self.bits not in (8, 16, 32, 64):
            return f"scattered access requires elements of 8, 16, 32 or 64 bits, but got '{self.element}'"
        return None

    def _map_problem(self, sg_map: SgMap) -> str | None:
        if problem := sg_map.problem():
            return problem
        if len(self.shape) > 2:
            return f"sg_map requires a 1D or 2D block, but got {by(self.shape)}"
        if len(self.shape) == 1 and (sg_map.wi_layout[0], sg_map.wi_data[0]) != (1, 1):
            return "the outer dimension of wi_layout and wi_data must be 1 for a 1D tensor descriptor"
        rows, columns = sg_map.wi_data
        if rows > 1 and (columns > 1 or rows * self.bits != 32):
            return (
                f"the elements of a fragment with wi_data = {[rows, columns]} of {self.element} are not contiguous: "
                f"a fragment is part of a row, or a column of elements that VNNI packs into 32 bits"
            )
        rows_and_columns = zip((1, *self.shape)[-2:], sg_map.wi_layout, sg_map.wi_data, ("rows", "columns"))
        for size, layout, data, what in rows_and_columns:
            if size < layout * data:
                return f"{size} {what} are fewer than wi_layout x wi_data = {layout} x {data}"
            if size % (layout * data):
                return f"{size} {what} are not divisible by wi_layout x wi_data = {layout} x {data}"
        return None

    def fragment(self) -> tuple[int, ...]:
        """The shape of one work item's part of the block in SIMT mode; the whole block where there is no sg_map."""
        if not self.attr.map:
            return self.shape
        layout = self.attr.map.wi_layout[-len(self.shape) :]
        return tuple(size // n for size, n in zip(self.shape, layout))


@dataclass(frozen=True)
class NBarrier(Type, dialect=XeGPU, name="nbarrier"):
    """A named barrier of the work group, with its id and the number of threads that meet there (RFC, init_nbarrier)."""


# Properties of the ops of XeGPU, and of dialects above it, which passes ask for instead of names.


class Hinted(Interface):
    """Has cache hints (RFC, L1_hint)."""

    l1_hint: Attribute[CacheHint] | None = None
    l2_hint: Attribute[CacheHint] | None = None
    l3_hint: Attribute[CacheHint] | None = None


class MemoryAccess(Interface):
    """Accesses memory by a descriptor, its operand `tdesc`."""

    if TYPE_CHECKING:

        @property
        def mode(self) -> Mode: ...

        @property
        def tdesc(self) -> ir.Value: ...

        @property
        def value(self) -> ir.Value:
            """The vector that is loaded or stored, or updates memory; prefetches have none."""


class BlockAccess(MemoryAccess):
    """Accesses the block of a descriptor."""


class ScatteredAccess(MemoryAccess):
    """Accesses memory at the address of each lane of a descriptor."""


class Prefetch(Interface):
    """Brings memory into the caches, and has no other effect."""


class MatrixProduct(Interface):
    """Multiplies the matrices `lhs` and `rhs`, and adds `acc` if it is there."""

    if TYPE_CHECKING:

        @property
        def mode(self) -> Mode: ...

        @property
        def acc(self) -> ir.Value | None: ...

        @property
        def result(self) -> ir.Value: ...


class DescriptorUpdate(Interface):
    """Gives a descriptor that is moved by offsets."""


class DescriptorMaker(Interface):
    """Gives a descriptor of memory by an address or a memref."""


# Rules that several XeGPU ops share, and the constraints on their operands.


class Address(OneOf):
    """A 64-bit address."""

    summary = "64-bit integer address"
    names = ("i64", "ui64", "si64")


class Byte(OneOf):
    """An 8-bit integer."""

    summary = "8-bit integer"
    names = ("i8", "ui8", "si8")


def check_mode(op: Any, desc: TensorDesc) -> None:
    """Check that no sg_map is present in VC mode (RFC, mode)."""
    if op.mode == Mode.VC and desc.attr.map:
        op.fail(
            "in VC mode requires a descriptor without sg_map, but got " + str(desc.attr.map),
            "in VC mode the op accesses the whole block; remove the sg_map, or remove 'mode = vc'",
        )


def check_scattered(op: Any, desc: TensorDesc, expected: bool) -> None:
    """Check that the descriptor is scattered, or not, as `expected` says."""
    if desc.attr.scattered != expected:
        wanted = "a scattered" if expected else "a block"
        other = "create_tdesc" if expected else "create_nd_tdesc"
        op.fail(f"requires {wanted} tensor descriptor, but got {desc}", f"use xegpu.{other} to create the descriptor")


def descriptor_of(op: Any, *, scattered: bool) -> TensorDesc:
    """The descriptor of an op, which is scattered or not, and goes with the op's mode; its cache hints are checked."""
    desc = TensorDesc.of(op.tdesc)
    if scattered and op.mode != Mode.VC:
        op.fail("is available in VC mode only", "add 'mode = vc'")
    check_scattered(op, desc, scattered)
    check_mode(op, desc)
    if isinstance(op, Hinted):
        check_hints(op)
    return desc


def check_hints(op: Any) -> None:
    """Check that the cache hints fit the op's access, a read or a write (RFC, load_nd)."""
    what, allowed = ("read", READ_HINTS) if "read" in op.effects else ("write", WRITE_HINTS)
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        hint = getattr(op, name)
        if hint is not None and hint not in allowed:
            names = ", ".join(h.value for h in allowed)
            op.fail(f"{name} = {hint.value} is not a valid hint for a {what}", f"valid hints for a {what} are {names}")


def check_scope(op: Any, desc: TensorDesc) -> None:
    """Check that a memory_scope of the op equals that of its descriptor."""
    if op.memory_scope is not None and op.memory_scope != desc.attr.memory_scope:
        op.fail(
            f"memory_scope = {op.memory_scope.value} does not match the descriptor's {desc.attr.memory_scope.value}"
        )


def check_mask(op: Any, lanes: int) -> None:
    """Check that the mask has one bit for each lane (RFC, load_gather)."""
    if shape_of(op.mask) != (lanes,):
        op.fail(
            f"requires a mask of type vector<{lanes}xi1>, but got {op.mask.type}",
            "the mask has one bit for each lane, not for each element of its chunk",
        )


def check_value(op: Any, name: str, shapes: Sequence[tuple[int, ...]], element: str, why: str) -> None:
    """The value has one of the shapes, and the element type; `why` says where they come from."""
    found = getattr(op, name).type
    if shape_and_element(found) not in [(s, element) for s in shapes]:
        wanted = " or ".join(vector_text(s, element) for s in shapes)
        op.fail(f"'{name}' must be {wanted}, but got {found}", why)


def check_memref(op: Any, what: str, element: str, slm: bool, setting: str) -> ir.MemRefType:
    """The source, a memref, has the elements of what is made of it, and lies in the memory that it says.

    Args:
        what: what is made.
        slm: whether that lies in shared local memory.
        setting: how it says so.
    """
    memref = ir.MemRefType(op.source.type)
    # An index in memory is an integer of 64 bits.
    if element != ("i64" if isinstance(memref.element_type, ir.IndexType) else str(memref.element_type)):
        op.fail(f"the {what}'s element type {element} does not match the memref's, {memref.element_type}")
    if is_slm(memref.memory_space) != slm:
        op.fail(
            f"{setting} does not match the memory space of {memref}",
            "memory space 3 is shared local memory; all other memory spaces are global memory",
        )
    return memref


def check_descriptor_memref(op: Any, desc: TensorDesc) -> ir.MemRefType:
    """See `check_memref`."""
    scope = desc.attr.memory_scope
    return check_memref(op, "descriptor", desc.element, scope == MemoryScope.SLM, f"memory_scope = {scope.value}")


def check_update(op: Any, element: str) -> None:
    """Check that an atomic update's kind fits the elements, and an expected value the kind and the written value."""
    if op.expected is not None and op.kind.name != "assign":
        op.fail(f"with an expected value must be of kind 'assign', but got '{op.kind.name}'")
    if op.expected is not None and op.expected.type != op.value.type:
        op.fail(f"the expected value must be {op.value.type}, like the value, but got {op.expected.type}")
    kind: str = op.kind.name
    if kind != "assign" and kind.endswith("f") != is_float(element):
        wanted = "floating-point" if kind.endswith("f") else "integer"
        op.fail(f"'{kind}' requires {wanted} elements, but got {element}")


def slm_space() -> ir.Attribute:
    """The memory space of new memrefs in shared local memory."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)


def is_slm(memory_space: ir.Attribute | None) -> bool:
    """Whether a memref in this memory space is in shared local memory."""
    return memory_space is not None and str(memory_space) in (
        "3 : i64",
        "3 : i32",
        "3",
        "#gpu.address_space<workgroup>",
    )


UNALIGNED = "xegpu.unaligned"
"""An attribute of kernels: the numbers of the arguments whose unknown alignment is not assumed."""

EXACT_SURFACES = "xegpu.exact_surfaces"
"""A unit attribute of kernels whose 2D blocks are moved by 2D block messages also where their surfaces break rules, so
that engines report it."""

WARNS_OF_REPAIRS = "xegpu.warns_of_repairs"
"""A unit attribute of kernels that are written in XeGPU. The pass xegpu-lower-unaligned-blocks warns of the first block
that breaks a rule of 2D block messages, and drops the attribute."""

EXACT_ADDRESSES = "xegpu.exact_addresses"
"""A unit attribute of kernels whose author chose the messages, such as those of XeVM. Engines report their addresses of
vectors and of consecutive elements that break rules."""

UNIT_STRIDES = "xegpu.unit_strides"
"""An attribute of kernels: the numbers of the memref arguments whose innermost stride is 1 although it is dynamic in
their types. Launches check it."""
