"""Facts about values: their shapes, elements and register types; and the kernels of a module."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice

from mlir import ir

from xegpu_py.dialects import visa
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.builtin import Decoded, bit_width, signedness
from xegpu_py.ir.builtin import integers as integers
from xegpu_py.ir.builtin import shape_and_element as shape_and_element
from xegpu_py.ir.builtin import shape_of as shape_of
from xegpu_py.ir.control_flow import ancestor_in
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import permutation_of
from xegpu_py.ir.module import functions, kernels, walk
from xegpu_py.ir.passes import ROOT
from xegpu_py.numerics.formats import FLOATS, TYPES
from xegpu_py.target import Target, target

# Facts about values, types and attributes.

_CONSTANTS = ("arith.constant", "index.constant")


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def post_order(
    root: ir.Value, known: Container[ir.Value], successors: Callable[[ir.Value], Sequence[ir.Value]]
) -> list[ir.Value]:
    """A value and all that its successors lead to, each value after its successors, without those that are known.

    Not by recursion: chains of ops are as long as a kernel.

    Args:
        root: the value, which is last.
        known: values of which neither they nor their successors are wanted.
        successors: the values that must precede a value, such as those that it is computed of.
    """
    order: dict[ir.Value, None] = {}
    expanded, pending = set[ir.Value](), [root]
    while pending:
        value = pending[-1]
        if value in expanded or value in known:
            pending.pop()
            if value not in known:
                order[value] = None
        else:
            expanded.add(value)
            pending += [v for v in successors(value) if v not in expanded and v not in known]
    return list(order)


def argument_number(value: ir.Value, *names: str) -> int | None:
    """The number of the argument of an op of one of these names that a value is; None for other values."""
    op = value.owner.owner if isinstance(value.owner, ir.Block) else None
    return ir.BlockArgument(value).arg_number if op is not None and op.operation.name in names else None


def block_of(value: ir.Value) -> ir.Block:
    """The block in which a value is defined."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def sees(op: ir.Operation, value: ir.Value) -> bool:
    """Return whether a value is defined in a block that encloses an op."""
    return ancestor_in(op, block_of(value)) is not None


_ADDRESS_OPS = ("arith.", "index.", "memref.dim", "memref.cast", "memref.subview", "memref.reinterpret_cast",
            "memref.transpose", "memref.extract_strided_metadata", "memref.collapse_shape", "xegpu.create_nd_tdesc",
            "xegpu.update_nd_offset")  # fmt: skip
"""Ops that compute the address of a block without reading memory."""


def arguments_of(address: ir.Value, body: ir.Block) -> set[int]:
    """The numbers of the loop arguments on which an address depends, and -1 if it depends on more than arithmetic."""
    numbers, visited, worklist = set[int](), set[ir.Value](), [address]
    while worklist:
        value = worklist.pop()
        if value in visited or block_of(value) != body:
            continue
        visited.add(value)
        op = defining_op(value)
        if op is None:
            numbers.add(ir.BlockArgument(value).arg_number)
        elif not op.name.startswith(_ADDRESS_OPS) or len(op.regions):
            numbers.add(-1)
        else:
            worklist += op.operands
    return numbers


def is_made_of_arguments(number: ir.Value) -> bool:
    """Whether a number is computed from nothing but the arguments of its function and extents of arrays."""
    visited, worklist = set[ir.Value](), [number]
    while worklist:
        value = worklist.pop()
        if value in visited:
            continue
        visited.add(value)
        op = defining_op(value)
        if op is None and argument_number(value, "gpu.func", "func.func") is None:
            return False
        if op is not None and op.name != "memref.dim":
            if not op.name.startswith("arith."):
                return False
            worklist += op.operands
    return True


def is_vector(value: ir.Value | ir.Type) -> bool:
    """Return whether this is, or has the type of, a vector of fixed size."""
    kind = value if isinstance(value, ir.Type) else value.type
    return isinstance(kind, ir.VectorType) and not kind.scalable


def element_of(value: ir.Value | ir.Type) -> ir.Type:
    """The element type of a vector or vector type; for others the type itself."""
    kind = value if isinstance(value, ir.Type) else value.type
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


_BITS = Decoded(lambda element: bit_width(str(element)))


def bits_of(element: ir.Type) -> int:
    """The bits of an integer or float type.

    Raises:
        ValueError: if it is neither, such as index.
    """
    return _BITS[element]


is_desc = TensorDesc.matches
"""Whether a type, or a value's type, is a tensor descriptor."""


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """An op's attributes by name."""
    return {name: op.attributes[name] for name in op.attributes}


def segments(op: ir.Operation) -> list[list[ir.Value]]:
    """The groups of an op's operands, as `operandSegmentSizes` divides them."""
    rest = iter(op.operands)
    return [list(islice(rest, n)) for n in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]


def view_numbers(op: ir.Operation) -> list[list[ir.Value | int]]:
    """The offsets, sizes and strides of a `memref.subview` or `memref.reinterpret_cast`."""
    dynamic, operands = ir.ShapedType.get_dynamic_size(), iter(list(op.operands)[1:])
    names = ("static_offsets", "static_sizes", "static_strides")
    return [
        [next(operands) if n == dynamic else n for n in ir.DenseI64ArrayAttr(op.attributes[name])] for name in names
    ]


def is_used(value: ir.Value) -> bool:
    """Return whether a value has uses."""
    return next(iter(value.uses), None) is not None


def constant_of(value: ir.Value | int) -> int | None:
    """The value of a constant integer; None for other values."""
    if isinstance(value, int):
        return value
    op = defining_op(value)
    if op is None or op.name not in _CONSTANTS:
        return None
    number = op.attributes["value"]
    return int(number.value) if isinstance(number, ir.IntegerAttr) else None


def splat_of(value: ir.Value) -> ir.Attribute | None:
    """The element of a splat constant; None for other values."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    elements = op.attributes["value"]
    return elements.get_splat_value() if isinstance(elements, ir.DenseElementsAttr) and elements.is_splat else None


def padding_select(load: ir.Operation) -> ir.Operation | None:
    """The select that is the only use of a load, and takes a splat for some of its elements; None for other uses."""
    uses = list(load.results[0].uses)
    select = uses[0].owner.operation if len(uses) == 1 and uses[0].operand_number == 1 else None
    is_padding = select is not None and select.name == "arith.select" and splat_of(select.operands[2]) is not None
    return select if is_padding else None


def gather_padding(load: ir.Operation) -> ir.Value | None:
    """The splat that the only use of a gather selects for the lanes that its mask disables; None for other uses."""
    select = padding_select(load)
    return select.operands[2] if select is not None and select.operands[0] == load.opview.mask else None


SIGNED_CASTS = ("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts")

UNSIGNED_CASTS = ("arith.extui", "arith.index_castui", "index.castu")


def integer_op(op: ir.Operation) -> str:
    """The name that integer arithmetic has in `index`, such as `add` for arith.addi too; other ops have others."""
    name: str = op.name
    dialect, _, kind = name.partition(".")
    return kind.removesuffix("i") if dialect in ("arith", "index") else name


def added_to(start: ir.Value, value: ir.Value) -> list[tuple[int, ir.Value]] | None:
    """The integers whose sum with `start` a value is, each with its sign; None if it is no such sum."""
    terms = []
    while value != start:
        op = defining_op(value)
        kind = "" if op is None else integer_op(op)
        if op is None or kind not in ("add", "sub"):
            return None
        value, term = op.operands
        if kind == "add" and _is_sum_from(start, term):
            value, term = term, value
        terms.append((1 if kind == "add" else -1, term))
    return terms


def _is_sum_from(start: ir.Value, value: ir.Value) -> bool:
    """Return whether a value is `start`, or a chain of sums whose first operand leads to it."""
    while value != start:
        op = defining_op(value)
        if op is None or integer_op(op) != "add":
            return False
        value = op.operands[0]
    return True


def moves_of(desc: ir.Value) -> tuple[ir.Value, list[list[ir.Value | int]]]:
    """The descriptor that a descriptor is moved from, and the offsets of each move, the last move first."""
    offsets: list[list[ir.Value | int]] = []
    while (op := defining_op(desc)) is not None and op.name == "xegpu.update_nd_offset":
        offsets.append(list(op.opview.offsets))
        desc = op.operands[0]
    return desc, offsets


FLOAT_ARITHMETIC = (
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf",
    "arith.minnumf", "arith.remf", "arith.cmpf",
)  # fmt: skip
"""Arithmetic of floats that can be computed in a wider format: rounding to 2p + 2 and then to p bits equals rounding
once."""

FLOAT_FUNCTIONS = (
    "math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.sin", "math.cos",
    "math.tanh", "math.erf", "math.powf",
)  # fmt: skip
"""Functions of floats that are computed in f32 for narrower formats, and by formulas in f64."""

INTEGRAL_FUNCTIONS = ("math.trunc", "math.floor", "math.ceil", "math.round", "math.roundeven")
"""Functions whose results are integral numbers."""


REGISTER_VIEWS = ("vector.extract", "vector.extract_strided_slice", "vector.shape_cast")
"""Ops whose result is a slice of their operand's registers, with the same element type."""


# Element types in memory: those of messages, and those of 2 and 4 bits, which share bytes.

_ACCESSES = (
    "memref.load", "memref.store", "memref.atomic_rmw", "memref.generic_atomic_rmw", "xegpu.create_nd_tdesc",
    "xegpu.create_tdesc",
)  # fmt: skip


def message_element(element: ir.Type) -> str | None:
    """The element type of descriptors for elements in memory, i64 for index; None if no message supports it."""
    if isinstance(element, ir.IndexType):
        return "i64"
    has_messages = isinstance(element, (ir.IntegerType, ir.FloatType)) and bit_width(str(element)) in (8, 16, 32, 64)
    return str(element) if has_messages else None


def no_messages(element: ir.Type) -> tuple[str, str]:
    """The error message and note for elements that no message supports."""
    note = "messages support elements of 8, 16, 32 and 64 bits, and index; store i1 as i8"
    return f"accesses elements of type {element}, which messages do not support", note


def check_elements(ops: Iterable[ir.Operation]) -> None:
    """Check that no op accesses elements of 2 or 4 bits, which are not addressable; i1 takes a byte.

    Raises:
        DiagnosticError: at the first op that accesses such elements.
    """
    for op in ops:
        if op.name not in _ACCESSES:
            continue
        kinds = [v.type for v in (*op.operands, *op.results)]
        elements = [str(k.element_type) for k in kinds if isinstance(k, ir.MemRefType)]
        elements += [TensorDesc.of(k).element for k in filter(is_desc, kinds)]
        narrow = next((e for e in elements if e not in ("i1", "index") and bit_width(e) < 8), None)
        if narrow:
            note = "xegpu-emulate-narrow-types packs them into bytes"
            emit_error(op, f"accesses elements of type {narrow}, which have no addresses", note)


NARROW_TYPES = {"i4": 4, "si4": 4, "ui4": 4, "f4E2M1FN": 4, "i2": 2, "si2": 2, "ui2": 2}
"""The bits of elements that share bytes; the first element of a byte is in its lowest bits."""


def narrow_bits(element: ir.Type | str) -> int:
    """The bits of an element type of 2 or 4 bits; 0 for other types."""
    return NARROW_TYPES.get(str(element), 0)


def memref_bits(kind: ir.Type) -> int:
    """`narrow_bits` of a memref's elements; 0 for other types."""
    return narrow_bits(kind.element_type) if isinstance(kind, ir.MemRefType) else 0


def desc_bits(kind: ir.Type) -> int:
    """`narrow_bits` of a descriptor's elements; 0 for other types."""
    return narrow_bits(TensorDesc.of(kind).element) if is_desc(kind) else 0


def _types_in(ops: Sequence[ir.Operation]) -> set[ir.Type]:
    """The types of the values that ops make."""
    kinds = {v.type for op in ops for v in op.results}
    return kinds | {a.type for op in ops for block in blocks_in(op) for a in block.arguments}


def has_narrow_elements(ops: Sequence[ir.Operation]) -> bool:
    """Return whether ops make values, memory or descriptors of elements of 2 or 4 bits."""
    return any(memref_bits(t) or desc_bits(t) or narrow_bits(element_of(t)) for t in _types_in(ops))


def needs_emulation(func: ir.Operation) -> bool:
    """Return whether a kernel has elements of 2 or 4 bits in memory, or computes with them."""
    inside = walk(func)
    kinds = _types_in(inside)
    if any(memref_bits(t) or desc_bits(t) for t in kinds):
        return True
    if not any(narrow_bits(element_of(t)) for t in kinds):
        return False
    ops = (op for op in inside if op.name.startswith("arith.") or "reduction" in op.name or permutation_of(op))
    values = (v for op in ops for v in (*op.operands, *op.results))
    arguments = func.regions[0].blocks[0].arguments
    return any(narrow_bits(element_of(v.type)) for v in (*values, *arguments))


def byte_memref(kind: ir.MemRefType) -> ir.MemRefType:
    """The memref of i8 that holds a memref's elements of 2 or 4 bits.

    Elements are in the order of their linear index, as in MLIR's emulation of narrow types.

    Raises:
        ValueError: if rows do not begin at bytes. Its arguments are a clause that follows an op's name, and a note.
    """
    rows = "rows of an even number of elements begin at bytes; of elements of 2 bits a multiple of four"
    each = 8 // narrow_bits(kind.element_type)
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    shape, (strides, offset) = list(kind.shape), kind.get_strides_and_offset()
    byte = ir.IntegerType.get_signless(8, kind.context)
    plain = kind.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank, kind.context))
    if shape:
        if shape[-1] != dynamic:
            if shape[-1] % each and kind.rank > 1:
                raise ValueError(
                    f"has {kind}, whose rows end within a byte: {shape[-1]} elements of {kind.element_type}", rows
                )
            shape[-1] = -(-shape[-1] // each)
        if strides[-1] != 1:
            qualifier = "known to be " if strides[-1] == unknown else ""
            message = f"has {kind}, whose innermost stride is not {qualifier}1, so elements do not fill bytes"
            raise ValueError(message, "use a type whose innermost stride is 1, such as strided<[?, 1]>")
    if plain:
        return ir.MemRefType.get(shape, byte, memory_space=kind.memory_space)
    for step in (*strides[:-1], offset):
        if step != unknown and step % each:
            message = f"has {kind}, whose rows begin within a byte: {step} elements of {kind.element_type}"
            raise ValueError(message, rows)
    steps = [n if n == unknown else n // each for n in strides[:-1]] + [1] * bool(strides)
    layout = ir.StridedLayoutAttr.get(offset if offset == unknown else offset // each, steps, kind.context)
    return ir.MemRefType.get(shape, byte, layout=layout, memory_space=kind.memory_space)


# The register types of MLIR's types.

_INTEGERS = {8: "b", 16: "w", 32: "d", 64: "q"}

INDEX = "q"
"""The register type of `index` in memory, and of an index that may need 64 bits."""


def register_type(element: str) -> str:
    """The vISA type of registers for elements of an MLIR type; signless integers are signed, and index has 64 bits.

    Raises:
        ValueError: if no register type holds the elements.
    """
    if element == "index":
        return INDEX
    if element in FLOATS and FLOATS[element].bits >= 8:
        return FLOATS[element].register
    name = _INTEGERS.get(bit_width(element))
    if name is None:
        raise ValueError(f"elements of type {element} have no register type")
    return f"u{name}" if signedness(element) == "u" else name


def element_bytes(element: str) -> int:
    """Bytes of an element in memory."""
    return 8 if element == "index" else max(bit_width(element) // 8, 1)


def unsigned(name: str) -> str:
    """The unsigned integer type as wide as a type."""
    return {1: "ub", 2: "uw", 4: "ud", 8: "uq"}[TYPES[name].bytes]


# Attributes of kernels, and their defaults.

SUBGROUP_SIZE = "xegpu.subgroup_size"
"""Attribute of a kernel of work items: the size of a subgroup."""

SUBGROUP_SIZES = (8, 16, 32)
"""The supported sizes of subgroups in work items."""

DEFAULT_SIZE = 16
"""The default size of a subgroup in work items: the lanes of dpas on Xe-HPC."""

WORK_ITEMS = "xegpu.work_items"
"""Attribute of a kernel of subgroups that was one of work items: the work items of a hardware thread."""


def work_items(func: ir.Operation) -> int:
    """Work items of a hardware thread if the kernel was written for work items; otherwise 0."""
    return int(ir.IntegerAttr(func.attributes[WORK_ITEMS]).value) if WORK_ITEMS in func.attributes else 0


CLEANUP = "canonicalize{top-down=false},cse"
"""MLIR's passes that simplify the IR after ours. `canonicalize` runs bottom-up: top-down it visits a loop again for
each op in it that changes, which takes time quadratic in the number of loop-carried values."""


def symbol_of(op: ir.Operation) -> str:
    """The name of a function, module or global."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def chosen_kernels(root: ir.Operation, name: str) -> list[ir.Operation]:
    """The kernels in an op; if a name is not empty, only those with this name."""
    return [func for func in kernels(root) if name in ("", symbol_of(func))]


def registers_of(func: ir.Operation, gpu: Target, grf: int) -> int | None:
    """The registers of a thread according to a pass's option `grf`; None for the target's default.

    Raises:
        DiagnosticError: if the target has no such number.
    """
    if grf and grf not in gpu.grf_counts:
        emit_error(func, f"target {gpu.name} has {' or '.join(map(str, gpu.grf_counts))} registers, not {grf}")
    return grf or None


SHARES = "xetile.shares"
"""The attribute of a kernel whose subgroups must compute the same values: it has one subgroup if tiles have no maps."""


def has_tiles(root: ir.Operation) -> bool:
    """Return whether any op in `root` is of XeTile."""
    loaded = getattr(root.context, "irdl_dialects", None)
    if loaded is not None and all(dialect.name != "xetile" for dialect in loaded):
        return False
    return any(op.name.startswith("xetile.") for op in walk(root))


LOAD_AHEAD = "xetile.load_ahead"
"""The attribute of loops that load ahead regardless of the options."""


def is_marked(ops: Iterable[ir.Operation]) -> bool:
    """Return whether any of a kernel's ops is a loop with the attribute `xetile.load_ahead`."""
    return any(op.name == "scf.for" and LOAD_AHEAD in op.attributes for op in ops)


# The functions that run on a GPU, and their targets.


def target_for(func: ir.Operation, name: str, root: ir.Operation | None = None) -> Target:
    """The GPU of a name; if the name is empty, the GPU in `visa.target` of a kernel or of an enclosing op.

    Raises:
        DiagnosticError: if there is no such GPU, at `root` if one is given.
    """
    if not name:
        return visa.target_of(func)
    try:
        return target(name)
    except ValueError as e:
        emit_error(root or func, str(e))


GpuFunction = tuple[ir.Operation, list[ir.Operation], Target]
"""A function, its ops, and its GPU."""


def gpu_functions(op: ir.Operation, name: str, kernel: str = "") -> list[GpuFunction]:
    """The kernels in `op` and the functions that they call.

    Args:
        name: the GPU's name; if it is empty, `visa.target` has it.
        kernel: the name of the only kernel to return; if it is empty, all kernels are returned.

    Raises:
        DiagnosticError: if there is no such GPU.
    """
    result: dict[ir.Operation, GpuFunction] = {}
    for func in visa.kernels(op):
        if kernel not in ("", visa.name_of(func)):
            continue
        gpu, ops = target_for(func, name, op), walk(func)
        names = {inner.name for inner in ops}
        if any(inner_name.startswith("visa.") for inner_name in names):
            continue
        result[func] = func, ops, gpu
        if CALL in names:
            for callee in Functions(func).reached(func):
                result.setdefault(callee, (callee, walk(callee), gpu))
    return list(result.values())


def subgroup_functions(op: ir.Operation, name: str, kernel: str = "", marked: bool = False) -> Iterator[GpuFunction]:
    """Of `gpu_functions` those with one block and without XeTile ops.

    Args:
        marked: whether to return only those that `is_marked`.
    """
    for func, ops, gpu in gpu_functions(op, name, kernel):
        excluded = len(func.regions[0].blocks) > 1 or (marked and not is_marked(ops))
        if not excluded and not has_tiles(func):
            yield func, ops, gpu


# Calls, and the functions that kernels can call.

CALL = "func.call"


def calls(op: ir.Operation) -> list[ir.Operation]:
    """The calls in an op, or the op if it is one."""
    return [inner for inner in walk(op) if inner.name == CALL]


class Functions:
    """The functions that a kernel can call: those of its module. MLIR verifies that they exist."""

    def __init__(self, op: ir.Operation) -> None:
        """Collect the functions that ops in `op` can call."""
        module = op.parent.operation
        while module.name not in ("gpu.module", ROOT):
            module = module.parent.operation
        self._symbols = ir.SymbolTable(module)

    def called(self, call: ir.Operation) -> ir.Operation:
        """The function that a call names."""
        return self.named(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)

    def named(self, name: str) -> ir.Operation:
        """The op of the module that defines a symbol."""
        return self._symbols[name].operation

    def reached(self, op: ir.Operation) -> Iterator[ir.Operation]:
        """The functions with bodies that an op calls directly or indirectly, each once."""
        visited: set[ir.Operation] = set()
        pending = [op]
        while pending:
            for call in calls(pending.pop()):
                callee = self.called(call)
                if callee not in visited and len(callee.regions[0].blocks):
                    visited.add(callee)
                    pending.append(callee)
                    yield callee


# The kernels that passes on XeTile lower, and the target of each.


def tile_kernels(root: ir.Operation) -> list[ir.Operation]:
    """The kernels in an op, or the op itself, that contain XeTile ops.

    Raises:
        DiagnosticError: at a kernel with branches between blocks.
    """
    result = []
    for func in functions(root):
        if has_tiles(func):
            if len(func.regions[0].blocks) != 1:
                emit_error(
                    func,
                    "has unstructured control flow, which is not supported with tiles",
                    "run xegpu-lift-cf first, which converts branches to scf ops",
                )
            result.append(func)
    return result
