"""Surfaces of 2D block messages: the tensors of block descriptors, and the reasons why messages cannot address them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mlir import ir
from msgspec import Struct, field, structs

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad, DescriptorMaker, DescriptorUpdate
from xegpu_py.dialects.xegpu.types import EXACT_SURFACES, UNIT_STRIDES
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.builtin import Decoded, strides_of
from xegpu_py.ir.control_flow import UnionFind, carried
from xegpu_py.ir.diagnostics import emit_error, position_of
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import STATIC, field_of, implements
from xegpu_py.passes.analysis.affine_analysis import IndexForms, Monomial
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import (
    REGISTER_VIEWS,
    SIGNED_CASTS,
    UNSIGNED_CASTS,
    argument_number,
    block_of,
    constant_of,
    defining_op,
    is_desc,
    sees,
    view_numbers,
)
from xegpu_py.passes.analysis.launch_assumptions import ASSUMED_32_BIT, assumed_multiples, unaligned_arguments
from xegpu_py.runtime.argument_conditions import OPERATIONS, Expression, Multiple, Product, Sum, Surface
from xegpu_py.target import Target
from xegpu_py.target.message_rules import Block2DLimits

if TYPE_CHECKING:
    from xegpu_py.dialects import xetile
else:
    xetile = deferred("xegpu_py.dialects.xetile")

# The tensors of block descriptors, and the rules of 2D block messages that they must satisfy.

_VIEWS = (
    "memref.subview", "memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape", "memref.cast",
    "memref.memory_space_cast", "memref.transpose", "memref.view", "memref.extract_aligned_pointer_as_index",
    "arith.index_cast", "arith.index_castui", "builtin.unrealized_conversion_cast",
)  # fmt: skip
"""Ops whose result is a view of their first operand's memory."""


def multiples_of(func: ir.Operation) -> tuple[Multiple, ...]:
    """The assumptions in a kernel's attribute `ASSUMED_MULTIPLES`."""
    return tuple(
        Multiple(array, _argument_or_extent(giver, dim), of) for array, giver, dim, of in assumed_multiples(func)
    )


def sums_of(func: ir.Operation) -> tuple[Sum, ...]:
    """The sums in a kernel's attribute `ASSUMED_32_BIT`."""
    sums = []
    for attribute in ir.ArrayAttr(func.attributes[ASSUMED_32_BIT]) if ASSUMED_32_BIT in func.attributes else ():
        array, *numbers = ir.DenseI64ArrayAttr(attribute)
        terms = []
        while numbers:
            factor, count, *numbers = numbers
            givers, numbers = numbers[: 2 * count], numbers[2 * count :]
            terms.append((factor, tuple(_argument_or_extent(*pair) for pair in zip(*[iter(givers)] * 2))))
        sums.append(Sum(array, tuple(terms)))
    return tuple(sums)


def _argument_or_extent(giver: int, dim: int) -> Expression:
    return ("argument", giver) if dim < 0 else ("extent", giver, dim)


def buffer_of(value: ir.Value) -> ir.Value:
    """The underlying memref or address of a view."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _VIEWS:
        value = value.owner.operation.operands[0]
    return value


def argument_of(value: ir.Value) -> int | None:
    """The number of the function argument that contains a memref or address; None if unknown."""
    return argument_number(buffer_of(value), "gpu.func", "func.func")


class DescribedTensor(Struct, frozen=True):
    """The tensor of a descriptor. Unknown properties are None.

    Attributes:
        extents: its shape.
        strides: elements from one index to the next, of each dimension.
        start: the offset of its first element from the start of the buffer, in elements.
    """

    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    start: int | None


def tensor_of(view: Any) -> DescribedTensor:
    """The known properties of the tensor of an `xegpu.create_nd_tdesc`."""
    shape, strides = tuple(map(constant_of, view.shape)), tuple(map(constant_of, view.strides))
    source = view.source
    memref_tensor = _MEMREF_TENSORS[source.type]
    if memref_tensor is None:
        return DescribedTensor(shape, strides, None)
    if not strides:
        strides = memref_tensor.strides
        if strides and strides[-1] is None and _is_unit(source):
            strides = (*strides[:-1], 1)
    return DescribedTensor(shape or memref_tensor.extents, strides, memref_tensor.start)


def _memref_tensor(kind: ir.Type) -> DescribedTensor | None:
    """The tensor that a memref's type describes; None for other types."""
    if not isinstance(kind, ir.MemRefType):
        return None
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    strides = strides_of(kind)
    offset = unknown if strides is None else kind.get_strides_and_offset()[1]
    return DescribedTensor(
        tuple(None if n == dynamic else n for n in kind.shape),
        tuple(None if n == unknown else n for n in strides or [unknown] * kind.rank),
        None if offset == unknown else offset,
    )


_MEMREF_TENSORS = Decoded(_memref_tensor)


def _is_unit(memref: ir.Value) -> bool:
    """Return whether the dynamic innermost stride of a memref is known to be 1 from its definition."""
    kind = ir.MemRefType(memref.type)
    steps = strides_of(kind)
    if steps is None or not steps or steps[-1] == 1:
        return bool(steps)
    op = defining_op(memref)
    if op is None:
        number = argument_number(memref, "gpu.func")
        return number is not None and number in unaligned_arguments(
            ir.BlockArgument(memref).owner.owner.operation, UNIT_STRIDES
        )
    if op.name not in ("memref.cast", "memref.subview") or ir.MemRefType(op.operands[0].type).rank != kind.rank:
        return False
    return (op.name == "memref.cast" or list(op.attributes["static_strides"])[-1] == 1) and _is_unit(op.operands[0])


def stride_problem(tensor: DescribedTensor) -> str | None:
    """The reason why no message of consecutive elements addresses a tensor: its innermost stride; None if that is 1."""
    step = tensor.strides[-1] if tensor.strides else 1
    if step == 1:
        return None
    return f"has an innermost stride {'that is not known to be 1' if step is None else f'of {step}'}"


def surface_problem(
    view: Any,
    target: Target,
    unaligned: Sequence[int] | None = (),
    tensor: DescribedTensor | None = None,
    most_bytes: int = 0,
    exact: bool = False,
) -> str | None:
    """The reason why block messages cannot address the tensor of an `xegpu.create_nd_tdesc`; None if they can.

    Blocks of one dimension use messages of consecutive elements, others 2D block messages.

    Args:
        unaligned: numbers of the arguments whose unknown alignment is not assumed; None for all memory.
        tensor: the known properties of the tensor, if the caller has them.
        most_bytes: the greatest span of an array that is an argument; 0 for no limit.
        exact: whether 2D block messages address the tensor also if that breaks their rules; see `EXACT_SURFACES`.
    """
    desc = TensorDesc.of(view.tdesc)
    tensor_facts = tensor or tensor_of(view)
    problem = stride_problem(tensor_facts)
    if problem is not None or len(desc.shape) < 2:
        return problem
    if desc.in_slm:
        return "is in shared local memory, where 2D block messages are not supported"
    if target.block2d is None:
        return f"requires 2D block messages, which target '{target.name}' does not support"
    if exact:
        return None
    size = desc.bits // 8
    width, pitch = tensor_facts.extents[-1], tensor_facts.strides[-2]
    start = _start_divisor(view.source) if tensor_facts.start is None else tensor_facts.start
    in_bytes = [None if n is None else n * size for n in (width, pitch, start)]
    problem = target.block2d.surface_problem(in_bytes[0], tensor_facts.extents[-2], in_bytes[1], in_bytes[2])
    outer = [
        None if n is None else n * size
        for n, count in zip(tensor_facts.strides[:-2], tensor_facts.extents)
        if count != 1
    ]
    problem = problem or target.block2d.outer_problem(outer)
    in_bytes += outer
    marked = is_unaligned(view, unaligned)
    if problem is None and marked and None in in_bytes:
        return "is not known to have the alignment that 2D block messages require"
    if problem is None and unaligned is not None and marked and tensor_facts.extents[-2] is None:
        by_pitch = pitch is not None and most_bytes // (pitch * size) < target.block2d.most_extent
        if most_bytes and by_pitch and _is_matrix_argument(view):
            return None
        return f"is not known to have at most {target.block2d.most_extent} rows, which 2D block messages require"
    return problem


class SurfaceChecks(Struct):
    """Calls `surface_problem` once for each tensor and type of descriptor: most descriptors are blocks of few tensors.

    Attributes:
        target, unaligned, most_bytes, exact: see `surface_problem`.
    """

    target: Target
    unaligned: Sequence[int] | None = ()
    most_bytes: int = 0
    exact: bool = False
    _problems: dict[Any, str | None] = field(default_factory=dict)

    def problem(self, view: Any, tensor: DescribedTensor) -> str | None:
        """The reason why block messages cannot address the tensor of an `xegpu.create_nd_tdesc`; None if they can."""
        key = (view.source, view.tdesc.type, view.operation.attributes.get(f"{STATIC}shape"), tensor)
        if key not in self._problems:
            self._problems[key] = surface_problem(
                view, self.target, self.unaligned, tensor, self.most_bytes, self.exact
            )
        return self._problems[key]


def _is_matrix_argument(view: Any) -> bool:
    of_kernel = argument_number(view.source, "gpu.func") is not None and is_kernel(view.source.owner.owner.operation)
    kind = view.source.type
    return of_kernel and isinstance(kind, ir.MemRefType) and kind.rank == 2 and not len(view.shape)


def is_unaligned(view: Any, unaligned: Sequence[int] | None) -> bool:
    """Return whether the unknown alignment of the tensor of an `xegpu.create_nd_tdesc` is not assumed.

    Args:
        unaligned: numbers of these arguments; None for all memory. If there are any, the alignment of memory that is
            not known to belong to another argument is not assumed either.
    """
    if not unaligned:
        return unaligned is None
    argument = argument_of(view.source)
    return argument is None or argument in unaligned


def column_problem(view: Any, size: int, limits: Block2DLimits, trusted: bool) -> str | None:
    """The reason why 2D block messages cannot address blocks at the columns where an op creates or moves them.

    Args:
        view: an `xegpu.create_nd_tdesc` or `xegpu.update_nd_offset`.
        size: bytes of an element.
        trusted: whether unknown columns are assumed to satisfy the rules of messages.
    """
    column = constant_of(view.offsets[-1])
    if column is None:
        column = 0 if trusted else divisor(view.offsets[-1])
    if column * size % limits.column_granule == 0:
        return None
    return f"begins at columns that are not multiples of {limits.column_granule} bytes, which 2D block messages require"


def _reinterpretation_of(source: ir.Value) -> ir.Operation | None:
    """The `memref.reinterpret_cast` that makes a memref, also one whose type a `memref.cast` has made dynamic again."""
    op = defining_op(source)
    while op is not None and op.name == "memref.cast":
        op = defining_op(op.operands[0])
    return op if op is not None and op.name == "memref.reinterpret_cast" else None


def _start_divisor(source: ir.Value) -> int | None:
    """A known divisor of a memref's offset, in elements."""
    op = _reinterpretation_of(source)
    if op is None:
        return None
    ((start,), *_) = view_numbers(op)
    forms = IndexForms()
    form = forms.scalar(start)
    # An unscaled term makes the sum's divisor unknown, as does a term whose divisor is checked by each call.
    if isinstance(start, int) or any(m and abs(n) == 1 for m, n in form.items()):
        return None
    block = block_of(source)
    while (func := block.owner.operation).name not in ("gpu.func", "func.func"):
        block = func.block
    checked = {giver for _, giver, _, _ in assumed_multiples(func)}

    def is_checked(m: Monomial, n: int) -> bool:
        return any(argument_number(forms.representative(s), "gpu.func") in checked for s in m) or (
            not m and n % 64 == 0
        )

    return None if all(is_checked(m, n) for m, n in form.items()) else forms.divisor(form)


# Finds a function's descriptors whose tensors 2D block messages cannot address, and the alignment of their rows.


class Surfaces(Struct):
    """The tensors of a function's block descriptors.

    Attributes:
        func: the function.
        classes: descriptors that are moved and carried together.
        creations: by class the ops that make its descriptors.
        problems: by class, the reason why 2D block messages cannot address the tensors.
    """

    func: ir.Operation
    classes: UnionFind[ir.Value] = field(default_factory=UnionFind)
    creations: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    problems: dict[ir.Value, str] = field(default_factory=dict)
    _users: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)

    def problem(self, desc: ir.Value) -> str | None:
        """The reason why no 2D block message moves a descriptor's block; None if a message does."""
        return self.problems.get(self.classes.find(desc))

    def creations_of(self, desc: ir.Value) -> list[Any]:
        """The `xegpu.create_nd_tdesc` ops from which a descriptor may come."""
        return [op.opview for op in self.creations.get(self.classes.find(desc), ())]

    def users_of(self, desc: ir.Value) -> list[ir.Operation]:
        """The ops that use a descriptor of the same class."""
        if not self._users:
            for op in walk(self.func):
                for value in op.operands:
                    if is_desc(value):
                        self._users.setdefault(self.classes.find(value), []).append(op)
        return self._users.get(self.classes.find(desc), [])

    def descriptor_form(self, desc: ir.Value) -> DescriptorForm | None:
        """The form of a descriptor that is lowered to numbers; None if no op of the function creates it.

        Raises:
            DiagnosticError: at one of the addresses, if control flow carries addresses of several types.
        """
        creations = self.creations_of(desc)
        if not creations:
            return None
        sources = [[view.source, *view.shape, *view.strides] for view in creations]
        values = [v for v in sources[0] if not isinstance(v, int)]
        same_sources = all(s == sources[0] for s in sources)
        users = self.users_of(desc)
        rank = len(TensorDesc.of(desc).shape)
        if same_sources and all(sees(op, v) for op in users for v in values):
            return DescriptorForm(rank)
        kinds = {"i64" if isinstance(view.source.type, ir.MemRefType) else str(view.source.type) for view in creations}
        if len(kinds) > 1:
            foreign = next(view for view in creations if not isinstance(view.source.type, ir.MemRefType))
            emit_error(
                foreign.operation,
                f"has an address of type {foreign.source.type}, but control flow passes its descriptor on as one with "
                f"those of other sources, and no 2D block message serves it: its tensor {self.problem(desc)}",
                "use addresses of type i64 in control flow that also passes memrefs",
            )
        stepped = any(stride_problem(tensor_of(view)) for view in creations)
        return DescriptorForm(rank, kinds.pop(), stepped)

    def row_alignment(self, desc: ir.Value) -> int:
        """The known alignment of a block's rows in bytes."""
        kind = TensorDesc.of(desc)
        size = max(kind.bits // 8, 1)
        divisors = [divisor(desc)]
        for view in self.creations_of(desc):
            tensor = tensor_of(view)
            # Buffers are aligned; the alignment of an integer address is unknown.
            numbers = (tensor.start, *tensor.strides[:-1])
            divisors += [1 if n is None else n for n in numbers]
        return math.gcd(*divisors) * size if len(divisors) > 1 else size


def find_surfaces(
    func: ir.Operation,
    ops: Sequence[ir.Operation],
    target: Target,
    unaligned: Sequence[int] | None = (),
    most_bytes: int = 0,
) -> Surfaces:
    """Find the classes of a function's block descriptors, and those that 2D block messages cannot address.

    Args:
        ops: the function's ops.
        unaligned: see `surface_problem`; the arguments in the kernel's `xegpu.unaligned` are added.
        most_bytes: see `surface_problem`.
    """
    surfaces, exact = Surfaces(func), EXACT_SURFACES in func.attributes
    for op in ops:
        join_descriptors(surfaces.classes, op)
    marked = None if unaligned is None else (*unaligned, *unaligned_arguments(func))
    moves, checks = [], SurfaceChecks(target, marked, most_bytes, exact)
    for op in ops:
        name = op.name
        if name not in ("xegpu.create_nd_tdesc", "xegpu.update_nd_offset"):
            continue
        view: Any = op.opview
        if view.mode != Mode.VC:
            continue
        result = op.results[0]
        root, desc = surfaces.classes.find(result), TensorDesc.of(result)
        if desc.attr.message:
            # Without its creations here, no pass replaces its accesses.
            continue
        moves.append((root, view, desc))
        if name == "xegpu.create_nd_tdesc":
            surfaces.creations.setdefault(root, []).append(op)
            problem = checks.problem(view, tensor_of(view))
            if problem:
                surfaces.problems.setdefault(root, problem)
    # Without marked memory, all unknown columns are trusted.
    creations = () if marked == () else surfaces.creations.items()
    untrusted = {root for root, creators in creations if any(is_unaligned(op.opview, marked) for op in creators)}
    for root, view, desc in moves:
        if root not in surfaces.problems and root in surfaces.creations and len(desc.shape) > 1 and not exact:
            assert target.block2d
            problem = column_problem(view, desc.bits // 8, target.block2d, root not in untrusted)
            if problem:
                surfaces.problems[root] = problem
    return surfaces


def join_descriptors(classes: UnionFind[ir.Value], op: ir.Operation) -> None:
    """Join the descriptors that an op moves or carries."""
    for group in carried(op):
        if is_desc(group[0]):
            classes.join(group)
    if implements(op, DescriptorUpdate):
        classes.join([op.results[0], op.operands[0]])


def foreign_descriptors(func: ir.Operation, ops: Iterable[ir.Operation]) -> list[ir.Value]:
    """The descriptors that are arguments of a function, or results of ops that neither create nor move descriptors."""
    descriptors = [a for a in func.regions[0].blocks[0].arguments if is_desc(a)]
    for op in ops:
        if not (makes_descriptor(op) or carried(op)):
            descriptors += [v for v in op.results if is_desc(v)]
    return descriptors


def makes_descriptor(op: ir.Operation) -> bool:
    """Return whether an op creates or moves a descriptor, or defines a poison descriptor."""
    return implements(op, DescriptorMaker) or implements(op, DescriptorUpdate) or op.name == "ub.poison"


def block_uses(op: ir.Operation) -> list[ir.Value]:
    """The descriptors whose blocks an op accesses; moves and control flow are excluded."""
    if makes_descriptor(op) or op.name in ("scf.yield", "scf.condition"):
        return []
    inner = {v for group in carried(op) for v in group}
    return [v for v in op.operands if is_desc(v) and v not in inner]


_DEPTH = 16

_PRODUCTS = {"xegpu.dpas": slice(-2, None), "xetile.tile_mma": slice(2)}
"""The operands that an op multiplies."""

_SAME_SURFACE = frozenset((*REGISTER_VIEWS, "xegpu.update_nd_offset", "xetile.update_tile_offset"))
"""Ops whose result comes from the surface of their first operand."""


_UNKNOWN = "is not known"
"""The begin of problems that surfaces may have."""


def first_repaired(
    surfaces: Surfaces, ops: Sequence[ir.Operation], target: Target, most_bytes: int
) -> tuple[ir.Operation, str] | None:
    """The first access of a 2D block whose surface breaks a rule that the GPU needs, and how; None if there is none.

    Upstream's lowering makes a 2D block message of it, and this project's lowering other messages.

    Args:
        surfaces: of the function, as `find_surfaces` found them for the target.
    """
    if target.block2d is None or not surfaces.problems:
        return None
    if target.block2d.tolerated:
        accepted = structs.replace(target, block2d=target.block2d.executed)
        surfaces = find_surfaces(surfaces.func, ops, accepted, (), most_bytes)
    for op in ops:
        if not implements(op, BlockAccess) or op.opview.mode != Mode.VC:
            continue
        tdesc = op.opview.tdesc
        problem, desc = surfaces.problem(tdesc), TensorDesc.of(tdesc)
        strided = any(stride_problem(tensor_of(view)) for view in surfaces.creations_of(tdesc))
        if problem and len(desc.shape) > 1 and not desc.in_slm and not strided and not problem.startswith(_UNKNOWN):
            return op, problem
    return None


def has_messages(func: ir.Operation, ops: Iterable[ir.Operation]) -> bool:
    """Whether a kernel has blocks whose accesses are messages as they are written, such as those of XeVM."""
    if EXACT_SURFACES in func.attributes:
        return True
    makers = (op for op in ops if op.name == "xegpu.create_nd_tdesc")
    return any(TensorDesc.of(op.results[0]).attr.message for op in makers)


def surfaces_of(ops: Iterable[ir.Operation]) -> tuple[Surface, ...]:
    """The surfaces of a kernel of XeGPU or XeTile that have dynamic extents or strides, given its ops."""
    surfaces: dict[Surface, None] = {}
    for op in ops:
        if op.name not in ("xegpu.create_nd_tdesc", "xetile.init_tile"):
            continue
        view: Any = op.opview
        if op.name == "xegpu.create_nd_tdesc" and TensorDesc.of(view.tdesc).attr.message:
            continue
        shape, strides = _extents(view)
        if len(shape) < 2 or all(isinstance(n, int) for n in (*shape[-2:], *strides[-2:])):
            continue
        argument = argument_of(view.source)
        if argument is None:
            continue
        if isinstance(view.source.type, ir.MemRefType) and view.source.type.memory_space is not None:
            continue
        (rows, columns), (pitch, step) = shape[-2:], strides[-2:]
        if constant_of(step) != 1 and constant_of(pitch) == 1:
            rows, columns, pitch = columns, rows, step
        size = (xetile.Tile if op.name == "xetile.init_tile" else TensorDesc).of(op.results[0]).bits // 8
        if size:
            surfaces[Surface(argument, size, *map(expression_of, (columns, rows, pitch)))] = None
    return tuple(surfaces)


def products_of(ops: Iterable[ir.Operation]) -> tuple[Product, ...]:
    """The products of a kernel whose operands are loaded from row-major surfaces, and not transposed or converted.

    Args:
        ops: the kernel's ops.
    """
    # One product for each pair of extents, since calls compare them.
    products: dict[tuple[Expression, Expression], Product] = {}
    surface_of = cache(partial(_surface_of, cache(_extents_of_array)))
    for op in ops:
        if op.name in _PRODUCTS:
            lhs, rhs = map(surface_of, list(op.operands)[_PRODUCTS[op.name]])
            if lhs and rhs and lhs[1] is not None and rhs[0] is not None and lhs[1] != rhs[0]:
                products.setdefault((lhs[1], rhs[0]), Product(str(position_of(op.location)), lhs[1], rhs[0]))
    return tuple(products.values())


def _loads(op: ir.Operation) -> bool:
    return implements(op, BlockLoad) or op.name == "xetile.load_tile"


_RowsAndColumns: TypeAlias = "tuple[Expression | None, Expression | None] | None"


def _surface_of(extents_of_array: Callable[[ir.Value], _RowsAndColumns], value: ir.Value) -> _RowsAndColumns:
    """The rows and columns of the surface from which a matrix is loaded; None if unknown."""
    matrix = value
    for _ in range(_DEPTH):
        op = defining_op(value)
        if op is None:
            number = argument_number(value, "scf.for")
            if not number:
                return None
            value = ir.BlockArgument(value).owner.owner.operation.operands[2 + number]
        elif op.name in ("xegpu.create_nd_tdesc", "xetile.init_tile"):
            source = field_of(op, "source")
            element = ir.VectorType(matrix.type).element_type
            if not isinstance(source.type, ir.MemRefType) or source.type.element_type != element:
                return None
            shape = field_of(op, "shape")
            return _last_extents(shape, field_of(op, "strides")) if shape else extents_of_array(source)
        elif op.name in _SAME_SURFACE or (_loads(op) and "transpose" not in op.attributes):
            value = op.operands[0]
        else:
            return None
    return None


def _last_extents(shape: Sequence[ir.Value | int], strides: Sequence[ir.Value | int]) -> _RowsAndColumns:
    if len(shape) < 2 or constant_of(strides[-1]) != 1:
        return None
    return expression_of(shape[-2]), expression_of(shape[-1])


def _extents_of_array(source: ir.Value) -> _RowsAndColumns:
    """The rows and columns of a row-major memref; None if unknown."""
    cast = _reinterpretation_of(source)
    if cast is not None:
        _, *extents = view_numbers(cast)
        return _last_extents(*extents)
    kind = source.type
    steps, unknown = kind.get_strides_and_offset()[0], ir.ShapedType.get_dynamic_size()
    array = expression_of(source, 0)
    if len(steps) < 2 or steps[-1] != 1 or (unknown in kind.shape[-2:] and not isinstance(array, tuple)):
        return None
    number, first = array[1] if isinstance(array, tuple) else -1, len(steps) - 2
    rows, columns = (n if n != unknown else ("extent", number, first + d) for d, n in enumerate(kind.shape[-2:]))
    return rows, columns


def _extents(view: Any) -> tuple[list[ir.Value | int], list[ir.Value | int]]:
    """The shape and strides of a descriptor or tile, from its op or from the `reinterpret_cast` of its memref."""
    shape = list(view.shape)
    cast = None if shape else _reinterpretation_of(view.source)
    if cast is None:
        return shape, list(view.strides)
    _, sizes, strides = view_numbers(cast)
    return sizes, strides


def expression_of(value: ir.Value | int, depth: int = _DEPTH) -> Expression | None:
    """The expression of a number in the function's arguments; None if it depends on other values or ops."""
    constant = constant_of(value)
    if constant is not None:
        return constant
    assert isinstance(value, ir.Value)
    op = defining_op(value)
    if op is None:
        number = argument_number(value, "gpu.func")
        return None if number is None else ("argument", number)
    if not depth:
        return None
    if op.name in (*SIGNED_CASTS, *UNSIGNED_CASTS) and op.name != "arith.trunci":
        return expression_of(op.operands[0], depth - 1)
    if op.name == "memref.dim":
        dimension = constant_of(op.operands[1])
        if dimension is None or not 0 <= dimension < _rank(op.operands[0]):
            return None
        return _layout_expression(op.operands[0], dimension, depth)
    if op.name == "memref.extract_strided_metadata":
        # Its results are the buffer, the offset, the extents, and the strides.
        number = next(i for i, result in enumerate(op.results) if result == value) - 2
        return None if number < 0 else _layout_expression(op.operands[0], number, depth)
    name = op.name.removeprefix("arith.")
    if name not in OPERATIONS or not op.name.startswith("arith."):
        return None
    operands = [expression_of(v, depth - 1) for v in op.operands]
    return None if None in operands else (name, *operands)


def _layout_expression(memref: ir.Value, number: int, depth: int) -> Expression | None:
    """The expression of an extent of a memref; its strides have the numbers after those of the extents."""
    op, rank = defining_op(memref), _rank(memref)
    if op is None:
        array = expression_of(memref, 0)
        return ("extent", array[1], number) if isinstance(array, tuple) and number < rank else None
    if not depth:
        return None
    if op.name == "memref.reinterpret_cast":
        _, sizes, strides = view_numbers(op)
        return expression_of([*sizes, *strides][number], depth - 1)
    if op.name not in ("memref.cast", "memref.memory_space_cast", "memref.subview") or _rank(op.operands[0]) != rank:
        return None
    if op.name != "memref.subview":
        return _layout_expression(op.operands[0], number, depth - 1)
    _, sizes, steps = view_numbers(op)
    expression = expression_of([*sizes, *steps][number], depth - 1)
    if number < rank:
        return expression
    stride = _layout_expression(op.operands[0], number, depth - 1)
    return None if expression is None or stride is None else ("muli", expression, stride)


def _rank(memref: ir.Value) -> int:
    return memref.type.rank if isinstance(memref.type, ir.MemRefType) else 0


class DescriptorForm(Struct, frozen=True):
    """The form of a descriptor that is lowered to numbers, because no 2D message moves its block.

    Attributes:
        rank: its number of dimensions; each has an offset.
        address: the type of the tensor's address if the numbers include the address, extents and strides. They do if
            descriptors of several tensors are carried together; otherwise empty.
        stepped: whether the numbers include the innermost stride; otherwise it is 1.
    """

    rank: int
    address: str = ""
    stepped: bool = False

    @property
    def strides(self) -> int:
        """The number of strides among the numbers."""
        return self.rank - (not self.stepped)
