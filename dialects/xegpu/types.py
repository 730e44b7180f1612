"""The XeGPU dialect in both spellings, and the attributes and types of the RFC's."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar

from mlir import ir

from xegpu_py.dialects.xegpu.spelling import UPSTREAM_NAME, Spelling, mixture, spelling_of, with_offsets
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import bit_width, by, is_float, is_integer
from xegpu_py.ir.codecs import Cursor, ParserScope, TypeText, register_int_enum
from xegpu_py.ir.definition import Attr, Dialect, Type, enum_attr

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


class UpstreamXeGPU(Dialect, name=UPSTREAM_NAME, namespace="xegpu"):
    """Upstream MLIR's XeGPU dialect, at workgroup, subgroup and lane level.

    The names and the syntax are those of LLVM 22.1.8 (mlir/include/mlir/Dialect/XeGPU/IR); other spellings of its main
    branch and of IMEX are read as well. In the IR the dialect has another name, since a context cannot have two
    dialects with the same name; in texts it is `xegpu`. Its types are in `upstream_types`, which only programs in this
    spelling need.
    """

    any_attributes = True
    checks_texts = True
    declares_late = True

    @classmethod
    def prepared(cls, text: str) -> str:
        return with_offsets(text)


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

UPSTREAM_WRITE_HINTS = (CacheHint.CACHED, CacheHint.UNCACHED, CacheHint.WRITE_BACK, CacheHint.WRITE_THROUGH)
"""Upstream's; the RFC's have `streaming` instead of `cached`."""


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


@enum_attr(XeGPU, "lane_shuffle_mode")
class LaneShuffleMode(str, Enum):
    """Whether a lane's elements become consecutive ones of the subgroup's, or stop being so."""

    PACK = "pack"
    UNPACK = "unpack"


@enum_attr(XeGPU, "hint")
class Hint(str, Enum):
    """A hint for a lower-level compiler: not to move instructions across this op (RFC, compile_hint)."""

    SCHEDULE_BARRIER = "schedule_barrier"


register_int_enum(AtomicRMWKind)


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
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> SgMap:
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
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> TdescAttr:
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


def _read_entries(cursor: Cursor, scope: ParserScope) -> tuple[TdescAttr, dict[str, Any]]:
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
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> TensorDesc:
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


class NBarrier(Type, dialect=XeGPU, name="nbarrier"):
    """A named barrier of the work group, with its id and the number of threads that meet there (RFC, init_nbarrier)."""


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
