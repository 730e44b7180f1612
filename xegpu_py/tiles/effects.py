"""Functions with effects: load, store, block pointers, atomics, barriers, prints, inline code."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from mlir import ir as mlir
from mlir.dialects import cf, gpu

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.types import FenceScope, MemoryKind
from xegpu_py.ir.builtin import INLINE, PRINT, TEXT, call_external
from xegpu_py.ir.context import current
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import parse_source
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import ATOMICS, Array, ArrayFrom, ArrayTile, Pointers, Scattered, assignable
from xegpu_py.tiles.element_types import DType, dtype_of
from xegpu_py.tiles.tile_values import Product, Value, constant, value_of
from xegpu_py.tiles.value_base import BUILDING, Handle, common_shape, matrix_shape

# Triton's `load` and `store`, of tiles and of pointers under masks.

_LOADED = "tiles and pointers are loaded and stored"

_PADDINGS = {"": None, "zero": None, "nan": math.nan}
"""The numbers that Triton's `padding_option` names."""


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    **hints: Any,
) -> Value:
    """The elements of a tile, or the elements that pointers point to.

    Args:
        pointer: a tile, or pointers; an array points to its first element.
        mask: where to read; a tile takes none, as its array bounds it.
        other: what masked and out-of-bounds elements are, by default zero: a number, or with pointers also a value.
        boundary_check: Triton's, without effect: a tile never reads out of bounds.
        padding_option: Triton's names for `other` of a tile: "zero" or "nan".
        hints: Triton's cache hints, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
        ValueError: for another `padding_option`.
    """
    _check_hints(hints)
    if padding_option not in _PADDINGS:
        raise ValueError(f"padding_option is 'zero' or 'nan', not {padding_option!r}")
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.load(_PADDINGS[padding_option] if other is None else other)
    loaded = scattered_of(pointer, _LOADED).load(mask, other)
    return loaded.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else loaded


def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Sequence[int] = (), **hints: Any) -> None:
    """Store to a tile, or to the elements that pointers point to.

    Args:
        pointer: a tile, or pointers; an array points to its first element.
        value: what to store.
        mask: where to write; a tile takes none, as its array bounds it.
        boundary_check: Triton's, without effect: a tile never writes out of bounds.
        hints: Triton's cache hints, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
    """
    _check_hints(hints)
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.store(value)
    return scattered_of(pointer, _LOADED).store(value, mask)


def pointed(pointer: Any) -> Any:
    """The pointer that a load or store accesses: of an array its first element, as of a pointer in Triton."""
    return Pointers(pointer, 0) if isinstance(pointer, Array) else pointer


def is_block(pointer: Any, mask: Any) -> TypeGuard[ArrayTile]:
    """Whether a load or store accesses a tile, and not pointers.

    Raises:
        TypeError: if a tile is given a mask.
    """
    if isinstance(pointer, ArrayTile) and mask is not None:
        raise TypeError("a tile takes no mask: out-of-bounds elements are not accessed")
    return isinstance(pointer, ArrayTile)


def scattered_of(pointer: Any, rule: str) -> Scattered:
    """The elements that pointers, `array + indices` or `array.at(indices)`, point to.

    Args:
        rule: the beginning of the error message: what the caller does with tiles and pointers.

    Raises:
        TypeError: if these are not pointers.
    """
    if isinstance(pointer, Pointers):
        return pointer.place()
    if isinstance(pointer, Scattered):
        return pointer
    raise TypeError(f"{rule}, not {pointer!r}")


_HINTS = ("cache_modifier", "eviction_policy", "volatile")


def _check_hints(hints: dict[str, Any]) -> None:
    unknown = [name for name in hints if name not in _HINTS]
    if unknown:
        raise TypeError(f"got an unexpected keyword argument '{unknown[0]}'")


# Triton's block pointers and tensor descriptors: tiles of arrays that are views of memory.


def _viewed(base: Any, shape: Sequence[int | Value], strides: Sequence[int | Value]) -> Array:
    """The memory from an array's first element on, or from the one to which a pointer points.

    Raises:
        TypeError: if it is neither an array nor a pointer to one element of an array.
    """
    if isinstance(base, Array):
        return base.view(shape, strides)
    if not isinstance(base, Pointers) or base.shape or not isinstance(base.array, Array):
        raise TypeError(f"tiles are of an array, or of what follows a pointer to one of its elements, not of {base!r}")
    return ArrayFrom(base.array, base.indices, shape, strides)


def make_block_ptr(
    base: Array | Pointers,
    shape: Sequence[int | Value],
    strides: Sequence[int | Value],
    offsets: Sequence[int | Value],
    block_shape: Sequence[int],
    order: Sequence[int] | None = None,
) -> Any:
    """A tile of a view of an array's memory, which `load` and `store` take and `advance` moves.

    Args:
        base: the array whose memory is viewed, from its first element on, or a pointer to the element at which the view
            begins.
        shape: the extents of the view.
        strides: the strides of the view, in elements.
        offsets: the indices at which the tile begins.
        block_shape: the tile's extents.
        order: Triton's order of dimensions in memory, without effect: it follows from the strides.

    Raises:
        ValueError: if the numbers of dimensions do not fit.
    """
    return assignable(_viewed(base, shape, strides).tile(block_shape, at=offsets))


def advance(base: Any, offsets: Sequence[int | Value]) -> Any:
    """A tile that is moved by these numbers of elements, one for each of its dimensions; `base` itself does not move.

    Raises:
        TypeError: if it is no tile of one or two dimensions.
    """
    if not isinstance(base, ArrayTile) or len(base.shape) != len(offsets):
        raise TypeError(f"advance moves a tile by a number for each dimension, but got {base!r} and {offsets!r}")
    advanced = assignable(base.copy())
    advanced.advance(*offsets)
    return advanced


class TensorDescriptor:
    """A view of an array's memory from which tiles of one shape are loaded.

    Attributes:
        array: the view.
        block_shape: the shape of the tiles.
    """

    def __init__(self, array: Array, block_shape: Sequence[int]) -> None:
        self.array, self.block_shape = array, tuple(block_shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """The extents of the view."""
        return self.array.shape

    @property
    def strides(self) -> tuple[int | Value, ...]:
        """The strides, in elements."""
        return self.array.strides

    def tile(self, offsets: Sequence[int | Value]) -> Any:
        """The tile that begins at these indices."""
        return self.array.tile(self.block_shape, at=offsets)

    def load(self, offsets: Sequence[int | Value]) -> Value:
        """The elements of a tile; out-of-bounds elements are zero."""
        return load(self.tile(offsets))

    def store(self, offsets: Sequence[int | Value], value: Any) -> None:
        """Store to a tile; out-of-bounds elements are not written."""
        store(self.tile(offsets), value)

    def atomic_add(self, offsets: Sequence[int | Value], value: Any) -> None:
        """Add to a tile, atomically."""
        self.tile(offsets).add(value)


def make_tensor_descriptor(
    base: Array | Pointers,
    shape: Sequence[int | Value],
    strides: Sequence[int | Value],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> TensorDescriptor:
    """A view of an array's memory from which tiles of one shape are loaded.

    Args:
        base: the array whose memory is viewed, or a pointer; see `make_block_ptr`.
        shape: the extents of the view.
        strides: the strides of the view, in elements.
        block_shape: the shape of the tiles.
        padding_option: the value of out-of-bounds elements: "zero".

    Raises:
        ValueError: for another padding, or if the numbers of dimensions do not fit.
    """
    if padding_option != "zero":
        raise ValueError(f"out-of-bounds elements of a tensor descriptor are zero, not {padding_option!r}")
    if len(block_shape) != len(shape):
        raise ValueError(f"blocks of {len(block_shape)} dimensions do not fit a tensor of {len(shape)} dimensions")
    return TensorDescriptor(_viewed(base, shape, strides), block_shape)


def load_tensor_descriptor(desc: TensorDescriptor, offsets: Sequence[int | Value]) -> Value:
    """The elements of the tile that begins at these indices: `desc.load(offsets)`."""
    return desc.load(offsets)


def store_tensor_descriptor(desc: TensorDescriptor, offsets: Sequence[int | Value], value: Any) -> None:
    """Store to the tile that begins at these indices: `desc.store(offsets, value)`."""
    desc.store(offsets, value)


# Atomic operations on tiles and on pointers.

_SCOPES = {None: "gpu", "gpu": "gpu", "sys": "gpu", "cta": "workgroup"}
"""Triton's memory scopes, by the scope of the fence for each."""


def _check(what: str, orders: Sequence[str], sem: str | None, scope: str | None) -> None:
    if sem is not None and sem not in orders:
        raise ValueError(f"the order of an atomic {what} is {', '.join(orders)}, not {sem!r}")
    if scope not in _SCOPES:
        raise ValueError(f"the scope of an atomic {what} is gpu, cta, sys, not {scope!r}")


def _updated(
    operation: str, pointer: Any, value: Any, mask: Any, expected: Any, sem: str | None, scope: str | None
) -> Value:
    _check("op", ("acquire", "release", "acq_rel", "relaxed"), sem, scope)
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.atomic(operation, value, expected)
    old_elements = scattered_of(pointer, "atomic ops update tiles and pointers").atomic(
        operation, value, mask, expected
    )
    return old_elements.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else old_elements


def _atomic(operation: str) -> Any:
    def atomic(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
        return _updated(operation, pointer, value, mask, None, sem, scope)

    atomic.__name__ = atomic.__qualname__ = f"atomic_{operation}"
    atomic.__doc__ = (
        f"Atomic {operation} of memory and a value; gives the old elements. "
        "Triton's `sem` and `scope` are checked and have no effect: the GPU's memory model holds for each."
    )
    return atomic


atomic_add, atomic_max, atomic_min, atomic_and, atomic_or, atomic_xor, atomic_xchg = map(_atomic, ATOMICS)


def atomic_cas(
    pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, mask: Any = None
) -> Value:
    """Compare memory with `cmp` and, where they are equal, write `val`, atomically; gives the old elements.

    Args:
        pointer: pointers, or a tile.
        cmp: the expected elements. Bits are compared: -0.0 does not equal 0.0, and a NaN may equal itself.
        val: the new elements.
        sem: Triton's memory order, which is checked and has no effect: the GPU's memory model holds for each.
        scope: Triton's memory scope, as `sem`.
        mask: where to compare and write; elements elsewhere are zero in the result.

    Raises:
        TypeError: if a tile is given a mask, or a value cannot be converted to the elements' type.
        ValueError: for another order or scope.
    """
    return _updated("xchg", pointer, val, mask, cmp, sem, scope)


def atomic_load(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
    """The elements of a tile or at pointers, each read atomically and before any later access to memory.

    Args:
        pointer: pointers, or a tile.
        mask: where to read.
        sem: "relaxed" leaves out the fence; by default "acquire".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order or scope.
    """
    _check("load", ("acquire", "relaxed"), sem, scope)
    # A comparison and swap that changes nothing: a race with other atomic accesses is none.
    loaded = _updated("xchg", pointer, 0, mask, 0, None, scope)
    if sem != "relaxed":
        fence(scope=_SCOPES[scope])
    return loaded


def atomic_store(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """Store to a tile or to pointers, each element atomically and after all earlier accesses to memory.

    Args:
        pointer: pointers, or a tile.
        value: what to store.
        mask: where to write.
        sem: "relaxed" leaves out the fence; by default "release".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order or scope.
    """
    _check("store", ("release", "relaxed"), sem, scope)
    if sem != "relaxed":
        fence(scope=_SCOPES[scope])
    _updated("xchg", pointer, value, mask, None, None, scope)


# Barriers and fences.


def barrier() -> None:
    """Wait for all subgroups of the workgroup. Afterwards each can read what the others have written."""
    BUILDING.check()
    gpu.barrier()
    BUILDING.built()


def debug_barrier() -> None:
    """Wait for all subgroups of the workgroup: Triton's name of `barrier`."""
    barrier()


def fence(memory: str = "both", scope: str = "gpu") -> None:
    """Make this subgroup's earlier writes visible before its later ones.

    Args:
        memory: "global", "shared" or "both".
        scope: to whom: "workgroup" or "gpu".

    Raises:
        ValueError: for another memory or scope.
    """
    BUILDING.check()
    memory_kinds = {"global": MemoryKind.GLOBAL, "shared": MemoryKind.SHARED, "both": None}
    scopes = {"workgroup": FenceScope.WORKGROUP, "gpu": FenceScope.GPU}
    if memory not in memory_kinds:
        raise ValueError(f"fence orders accesses of {', '.join(memory_kinds)}, not {memory!r}")
    if scope not in scopes:
        raise ValueError(f"the scope of a fence is {' or '.join(scopes)}, not {scope!r}")
    xegpu.fence(memory_kind=memory_kinds[memory], scope=scopes[scope])
    BUILDING.built()


class NamedBarrier(Handle):
    """A barrier for some subgroups of a workgroup."""

    def arrive(self) -> None:
        """Signal that this subgroup has arrived, without waiting."""
        xegpu.nbarrier_arrive(self.ir)
        BUILDING.built()

    def wait(self) -> None:
        """Wait until all subgroups have arrived."""
        xegpu.nbarrier_wait(self.ir)
        BUILDING.built()

    def with_ir(self, value: mlir.Value) -> NamedBarrier:
        return NamedBarrier(value)


def named_barrier(number: int, participants: int) -> NamedBarrier:
    """A named barrier, for kernels without maps, whose subgroups follow different control flow.

    Args:
        number: the barrier's number in the workgroup, from 1 to 31; `barrier` uses 0.
        participants: the number of subgroups that wait for each other, from 1 to 64.

    Raises:
        ValueError: for another number.
    """
    BUILDING.check()
    if not 1 <= number < 32 or not 1 <= participants <= 64:
        raise ValueError(
            f"barriers are numbered 1 to 31 and are for 1 to 64 subgroups, not {number} for {participants}"
        )
    xegpu.alloc_nbarrier(nbarrier_num=number + 1)
    ident, count = (constant(element_types.uint8, n).ir for n in (number, participants))
    return NamedBarrier(xegpu.init_nbarrier(ident, count))


# Assertions, printing, and hints to the compiler.

PRINTED = 64
"""Most elements that `device_print` shows of a value."""


def static_assert(condition: Any, message: str = "") -> None:
    """Reject the kernel unless a condition holds that is known at compile time.

    Raises:
        ValueError: if it does not hold.
        TypeError: if it is known only at run time.
    """
    if isinstance(condition, (Value, Product)):
        raise TypeError("static_assert needs a condition that is known at compile time; see device_assert")
    if not condition:
        raise ValueError(f"static assertion failed: {message}" if message else "static assertion failed")


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Python's `print` at compile time. Values that are known only at run time show their type."""
    texts = [v.describe() if isinstance(v, Value) else v for v in values]
    builtins.print(*texts, sep=sep, end=end, file=file, flush=flush)


def device_assert(condition: Any, message: str = "", mask: Any = None) -> None:
    """Stop the run with an error at this line unless a condition holds for each element.

    Args:
        condition: truth values, or numbers, where zero is false.
        message: the error message.
        mask: which elements to check; by default all.
    """
    BUILDING.check()
    holds = value_of(condition).to(element_types.bool_)
    if mask is not None:
        holds = holds | ~value_of(mask).to(element_types.bool_)
    cf.assert_((holds.all() if holds.shape else holds).ir, message or "assertion failed")
    BUILDING.built()


def device_print(prefix: str, *values: Any, hex: bool = False) -> None:
    """Print a text and values as the kernel runs, once for each workgroup; compiled kernels print at their end.

    Args:
        prefix: the text, which is known at compile time.
        values: scalars, or values of up to 64 elements.
        hex: whether to print integers in base 16.

    Raises:
        TypeError: if the prefix is not a string.
        ValueError: for values of more elements.
    """
    BUILDING.check()
    if not isinstance(prefix, str):
        raise TypeError(f"device_print needs a text first, not {prefix!r}")
    form, operands = prefix.replace("%", "%%"), []
    for printed in values:
        value = _printable(value_of(printed))
        if value.size > PRINTED:
            raise ValueError(f"device_print shows values of up to {PRINTED} elements, not {value.describe()}")
        conversion = " %f" if value.dtype.is_float else " %x" if hex else " %u" if value.dtype.kind == "uint" else " %d"
        line = value.ravel() if value.shape else value
        elements = [line[i] for i in range(value.size)] if value.shape else [line]
        form += conversion * len(elements)
        operands += [p.ir for p in elements]
    gpu.printf(form + "\n", *operands)
    BUILDING.built()


def print_each(form: str, *values: Value) -> None:
    """Print a line for each element of a value as the kernel runs.

    Args:
        form: the format of a line, with a conversion of C's printf for each value.
        values: numbers, and values of one shape with the elements of a line in the same position.
    """
    printed = [_printable(v) for v in values]
    shape = common_shape(*(v.shape for v in printed))
    if shape:
        every = constant(element_types.bool_, True, shape)
        call_external(PRINT, None, every.ir, *(v.ir for v in printed), attributes={TEXT: mlir.StringAttr.get(form)})
    else:
        gpu.printf(form, *(v.ir for v in printed))
    BUILDING.built()


def _printable(value: Value) -> Value:
    """A value in a type that is printed: truth values as integers, narrow floats as float32."""
    if value.dtype.kind == "bool":
        return value.to(element_types.int32)
    return value.to(element_types.float32) if value.dtype.is_float and value.dtype.bits < 32 else value


# Hints.


def _hinted(value: Any, numbers: Any, name: str) -> Any:
    hints = numbers if isinstance(numbers, Sequence) else [numbers]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in hints):
        raise TypeError(f"{name} needs positive integers that are known at compile time, not {numbers!r}")
    return value


def multiple_of(value: Any, values: Any) -> Any:
    """Triton's hint that a value is a multiple of a number. It has no effect: the compiler derives this itself."""
    return _hinted(value, values, "multiple_of")


def max_contiguous(value: Any, values: Any) -> Any:
    """Triton's hint that groups of `values` elements are consecutive numbers. It has no effect."""
    return _hinted(value, values, "max_contiguous")


def max_constancy(value: Any, values: Any) -> Any:
    """Triton's hint that groups of `values` elements are equal. It has no effect."""
    return _hinted(value, values, "max_constancy")


def assume(condition: Any) -> None:
    """Promise that a condition holds. The engines check it as `device_assert` does.

    Raises:
        ValueError: if it is known to be false when the kernel is compiled.
    """
    if isinstance(condition, (Value, Product)):
        device_assert(condition, "assumption does not hold")
    elif not condition:
        raise ValueError("assumption does not hold")


def expect_zero(value: Any, mask: Any) -> Any:
    """Promise that a value is zero wherever a mask is set; gives the value. `device_assert` checks it."""
    operand = value_of(value)
    device_assert(
        (operand == 0) | ~value_of(mask).to(element_types.bool_),
        "expect_zero: a value is not zero where the mask is set",
    )
    return value


# Inline MLIR and vISA, for operations without a function in the language.


def inline_mlir(text: str, *operands: Any, dtype: Any = None) -> Any:
    """Build ops of MLIR from text, with values of the kernel as operands.

        angle = inline_mlir("%r = math.atan2 $0, $1 : $t0  return %r : $t0", y, x)

    `$0`, `$1`, ... stand for the operands, and `$t0`, `$t1`, ... for their types: scalars and vectors, in which leading
    dimensions beyond two are one. The text ends with `return`, which names the results and their types.

    Args:
        text: the ops.
        operands: values and numbers.
        dtype: the element type of the results, or a tuple of element types; integers are signed by default.

    Returns:
        The result, a tuple of several results, or None. A result has the shape of the first operand of its MLIR shape.

    Raises:
        ValueError: if the text cannot be parsed.
    """
    BUILDING.check()
    operands_ = [value_of(v) for v in operands]
    body = re.sub(r"\$t(\d+)", lambda m: str(operands_[int(m[1])].ir.type), text)
    body = re.sub(r"\$(\d+)", lambda m: f"%arg{m[1]}", body)
    returns = re.findall(r"\breturn\b([^\n]*)", body)
    if not returns:
        raise ValueError("the text of inline_mlir ends with 'return', and the types of what it returns")
    results = returns[-1].partition(":")[2].strip()
    arguments = ", ".join(f"%arg{i}: {v.ir.type}" for i, v in enumerate(operands_))
    module_text = f"func.func @inlined({arguments}) -> ({results}) {{\n{body}\n}}"
    try:
        module = parse_source(Source(module_text, "<inline_mlir>"), context=current())
    except DiagnosticError as e:
        raise ValueError(f"inline_mlir: {e.diagnostics[0].message}") from e
    return _results(_inlined(module, operands_), operands_, dtype)


def _inlined(module: Any, operands: list[Value]) -> list[mlir.Value]:
    """Clone the ops of a function at the insertion point; gives the results."""
    (function,) = module.ir.body.operations
    block = function.regions[0].blocks[0]
    values = dict(zip(block.arguments, (v.ir for v in operands)))
    *ops, terminator = block.operations
    for op in ops:
        clone = op.operation.clone()
        for i, operand in enumerate(op.operation.operands):
            clone.operands[i] = values[operand]
        values |= dict(zip(op.operation.results, clone.results))
    return [values[v] for v in terminator.operation.operands]


def _results(results: list[mlir.Value], operands: list[Value], dtype: Any) -> Any:
    dtypes = dtype if isinstance(dtype, (tuple, list)) else [dtype] * len(results)
    values = []
    for value, result_dtype in zip(results, dtypes, strict=True):
        plain = Value(value, None if result_dtype is None else dtype_of(result_dtype))
        like = next((v for v in operands if matrix_shape(v.shape) == plain.shape), None)
        values.append(plain if like is None else plain.reshape(like.shape))
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def inline_visa(text: str, *operands: Any, dtype: Any = None) -> Value:
    """Apply arithmetic instructions of vISA, given as text, to each element.

        high = inline_visa("mulh $0:ud $1:ud $2:ud", a, b)
        y = inline_visa("mul %t:f $1:f 0.5:f  \\n mad.sat $0:f %t:f $1:f $2:f", x, bias)

    `$0` is the result, `$1`, `$2`, ... are the operands, names that begin with `%` are temporaries, and numbers
    are immediates. Each has its type; a minus sign negates. Execution sizes, regions and masks are those of the
    vectors. The reference and the eager engine reject it: they do not execute vISA.

    Args:
        text: an instruction a line: name, with `.sat` or without, destination, sources.
        operands: values, which are broadcast, and numbers of the first value's type.
        dtype: the element type of the result; by default that of the first operand.

    Raises:
        TypeError: if no operand is a value.
    """
    BUILDING.check()
    first_value = next((value_of(v) for v in operands if isinstance(v, (Value, Product))), None)
    if first_value is None:
        raise TypeError("inline_visa needs an operand that is a value")
    arguments = [value_of(v, first_value.dtype) for v in operands]
    shape = common_shape(*(v.shape for v in arguments))
    wide = [v.broadcast(shape or (1,)) for v in arguments]
    to = first_value.dtype if dtype is None else dtype_of(dtype)
    attributes = {TEXT: mlir.StringAttr.get(text)}
    vector_type = wide[0]._type(wide[0].shape, to)
    result = wide[0]._made(call_external(INLINE, vector_type, *(v.ir for v in wide), attributes=attributes), to)
    return result.reshape(shape)


def inline_asm_elementwise(
    asm: str, constraints: str, args: Sequence[Any], dtype: Any, is_pure: bool = True, pack: int = 1
) -> Value:
    """Apply instructions to each element, by Triton's name; the instructions are those of vISA. See `inline_visa`.

    Args:
        asm: the instructions.
        constraints: Triton's list, as "=r,r,r": one for the result, which begins with "=", and one for each operand.
        args: the operands.
        dtype: the element type of the result.
        is_pure, pack: Triton's, without effect: the instructions only compute, and each works on single elements.

    Raises:
        ValueError: if the constraints are not those of one result and these operands.
    """
    constraint_names = [constraint.strip() for constraint in constraints.split(",") if constraint.strip()]
    if len(constraint_names) != 1 + len(args) or [constraint[0] == "=" for constraint in constraint_names] != [
        True,
        *[False] * len(args),
    ]:
        raise ValueError(f"'constraints' must be those of a result and {len(args)} operands, but got {constraints!r}")
    return inline_visa(asm, *args, dtype=dtype)
