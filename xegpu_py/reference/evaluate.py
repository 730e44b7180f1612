"""Running a kernel: selecting it, detecting its level, binding its arguments, and iterating over the grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.dialects import xetile
from xegpu_py.dialects.tt import Ptr
from xegpu_py.dialects.tt import TensorDesc as TritonDesc
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import Module, argument_names, is_program, kernels, walk
from xegpu_py.ir.passes import Step, run_upstream
from xegpu_py.numerics.dpas import MODELS, Model
from xegpu_py.numerics.systolic import Systolic
from xegpu_py.reference import arith_math, gpu_control, memref, triton, vector, xegpu_xetile  # noqa: F401  (the rules)
from xegpu_py.reference.machine import EvaluatedFunction, LaunchState, Workgroup
from xegpu_py.reference.storage import BASE, AddressSpace, ElementType, Fault, MemRef, attach, element_of, kind_of
from xegpu_py.runtime.host_arrays import PackedArrays, PointerTable, check_numbers, packed_shape
from xegpu_py.runtime.launch import block_of
from xegpu_py.visa.program import extent, kernel_index, place_in

SUBGROUP_SIZE, WORK_ITEMS = "xegpu.subgroup_size", "xegpu.work_items"
"""Attributes of kernels: the number of work items in a subgroup, before and after xegpu-simt-to-vc."""

_DEFAULT_LANES = 16


def run(
    module: Module,
    kernel: str | None = None,
    arguments: Sequence[Any] = (),
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
    model: Model = "fma",
    groups: Iterable[int] | None = None,
    watch: tuple[int, range] | None = None,
    names: Sequence[str] = (),
) -> list[tuple[ir.Operation, str]]:
    """Evaluate a kernel at its level; arrays are changed in place.

    Workgroups run one after the other, by increasing x, then y, then z.

    Args:
        module: the module that contains the kernel, at any level above vISA. It is not changed.
        kernel: the name of the `gpu.func`; optional if there is only one kernel.
        arguments: one for each parameter: for a memref an array of its element type, shape and strides, for a
            vector an array of its elements, otherwise a number.
        grid: number of workgroups in x, or in x, y and z.
        block: number of subgroups in a workgroup, or of work items if the kernel is in SIMT mode, likewise.
        model: rounding model of dpas (docs/numerics.md).
        groups: the numbers of the workgroups to run, x fastest; by default all.
        names: the user's names of the arguments, for error messages.
        watch: the number of an array argument, and the range of its bytes to watch, relative to its first element.

    Returns:
        The ops that wrote a watched byte, in order, each with its workgroup and subgroup.

    Raises:
        TypeError, ValueError: if there is no such kernel, or an argument does not match its parameter.
        DiagnosticError: at an op that is not supported, accesses memory out of bounds, or waits forever.
    """
    if model not in MODELS and not isinstance(model, Systolic):
        raise ValueError(f"'model' must be one of {', '.join(MODELS)}, but got {model!r}")
    if isinstance(model, Systolic) and model.flushed:
        raise ValueError("the reference evaluator keeps subnormal numbers, but the model of dpas takes some for zeros")
    # An op of a copy does not keep the copy.
    func, _whole = _without_affine(kernel_of(module, kernel))
    memory = AddressSpace("global memory", BASE)
    size = {"grid": extent(grid, "grid"), "block": extent(block, "block")}
    for extent_name, given in size.items():
        declared_size = func.attributes.get(f"known_{extent_name}_size")
        if declared_size is not None and tuple(ir.DenseI32ArrayAttr(declared_size)) != given:
            raise ValueError(
                f"'{extent_name}' must be {tuple(declared_size)}, as known_{extent_name}_size says, but got {given}"
            )
    packed_arrays = PackedArrays()
    values = bind(types_of(func), arguments, memory, packed_arrays, names or argument_names(func, module.sources))
    if watch is not None:
        number, positions = watch
        memory.watched = range(values[number].address + positions.start, values[number].address + positions.stop)
    of_workgroups = is_of_workgroups(func)
    lanes = 1 if of_workgroups else lanes_of(func)
    items = lanes
    if WORK_ITEMS in func.attributes:
        items = int(ir.IntegerAttr(func.attributes[WORK_ITEMS]).value)
    try:
        with module.context, ir.Location.unknown(), np.errstate(all="ignore"):
            function = EvaluatedFunction(func)
            launch = LaunchState(
                function, size["grid"], size["block"], lanes, items, of_workgroups, model, values, memory
            )
            count = math.prod(launch.grid)
            for number in range(count) if groups is None else groups:
                Workgroup(launch, place_in(launch.grid, number)).run()
            return launch.writers
    except DiagnosticError as e:
        e.sources = list(module.sources)
        raise
    finally:
        packed_arrays.write_back()


def _without_affine(func: ir.Operation) -> tuple[ir.Operation, ir.Operation]:
    """The kernel and its module, or copies in which MLIR has lowered ops of `affine`, by which they are defined."""
    module = func
    while module.parent is not None:
        module = module.parent
    # The kernel may call other functions of its module.
    if func.parent is None or not any(op.name.startswith("affine.") for op in walk(func.parent)):
        return func, module
    number = kernels(module).index(func)
    with func.context:
        copy = module.clone().operation
        lowered = kernels(copy)[number]
        run_upstream(Step("lower-affine"), lowered.parent)
    return lowered, copy


def types_of(func: ir.Operation) -> tuple[ir.Type, ...]:
    """The types of a kernel's arguments."""
    return tuple(ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs)


def kernel_of(module: Module, name: str | None) -> ir.Operation:
    """The kernel of a name, or the only kernel.

    Raises:
        ValueError: if there is none, or several and no name.
    """
    kernel_ops = kernels(module.operation)
    return kernel_ops[kernel_index([ir.StringAttr(op.attributes["sym_name"]).value for op in kernel_ops], name)]


def is_of_workgroups(func: ir.Operation) -> bool:
    """Whether a kernel is at workgroup level: its tiles have a wg_map, or its vectors a layout, or it is Triton's."""
    return is_program(func) or any(map(is_of_workgroup, walk(func)))


def is_of_workgroup(op: ir.Operation) -> bool:
    """Whether an op's vectors or tiles are divided among the subgroups of a workgroup."""
    if op.name == "iree_vector_ext.to_layout":
        return True
    if op.name != "gpu.func" and any("wg_map" in str(op.attributes[name]) for name in op.attributes):
        return True
    return any("wg_map" in text for text in (str(v.type) for v in op.results) if text.startswith("!xetile."))


def lanes_of(func: ir.Operation) -> int:
    """Number of work items in a subgroup; 1 for a kernel that is not in SIMT mode (docs/simt.md).

    A kernel is in SIMT mode if it has the attribute, or an op of XeGPU in SIMT mode. The number is the
    attribute's value, or else the number of lanes of an sg_map, or else 16.
    """

    if SUBGROUP_SIZE in func.attributes:
        return int(ir.IntegerAttr(func.attributes[SUBGROUP_SIZE]).value)
    is_simt = False
    for op in walk(func):
        if not op.name.startswith("xegpu.") or getattr(op.opview, "mode", None) != Mode.SIMT:
            continue
        is_simt = True
        for value in (*op.operands, *op.results):
            text = str(value.type)
            sg_map = TensorDesc.decode(text).attr.map if text.startswith("!xegpu.tensor_desc") else None
            if sg_map is not None:
                return math.prod(sg_map.wi_layout)
    return _DEFAULT_LANES if is_simt else 1


def bind(
    types: Sequence[ir.Type],
    arguments: Sequence[Any],
    memory: AddressSpace,
    packed_arrays: PackedArrays | None = None,
    names: Sequence[str] = (),
) -> list[Any]:
    """The kernel's values for arguments; arrays become allocations in place.

    Args:
        packed_arrays: packs arrays of 2- and 4-bit elements.
        names: the user's names of the arguments, for error messages.

    Raises:
        TypeError, ValueError: if one does not match its type; the message names it.
    """
    if len(arguments) != len(types):
        listed = ", ".join(f"{i}: {t}" for i, t in enumerate(types))
        raise TypeError(f"the kernel takes {len(types)} arguments ({listed}), but got {len(arguments)}")
    packed_arrays = packed_arrays or PackedArrays()
    names = names or [""] * len(types)
    titles = [f"argument '{n}'" if n else f"argument {i}, a {t}," for i, (n, t) in enumerate(zip(names, types))]
    # The addresses in a table are written when the arrays have some.
    tables = {i: a.arrays for i, a in enumerate(arguments) if isinstance(a, PointerTable) and a.arrays}
    arguments = [np.zeros(len(tables[i]), np.int64) if i in tables else a for i, a in enumerate(arguments)]
    elements = [_element_in_memory(type_, title) for type_, title in zip(types, titles)]
    arguments = [
        a if e is None else packed_arrays.pack(a, e.name, titles[i])
        for i, (e, a) in enumerate(zip(elements, arguments))
    ]
    arrays = [
        (names[i] or f"argument {i}", _array(a, type_, element, titles[i]))
        for i, (type_, element, a) in enumerate(zip(types, elements, arguments))
        if element is not None
    ]
    for i, pointed in tables.items():
        for j, array in enumerate(pointed):
            check_numbers(array, f"array {j} of {titles[i]}")
            arrays.append((f"{names[i] or f'argument {i}'}[{j}]", array))
    addresses = iter(attach(memory, arrays))
    values: list[Any] = []
    for i, (type_, argument) in enumerate(zip(types, arguments)):
        element = elements[i]
        if element and str(type_).startswith("!tt.ptr<"):
            values.append(np.asarray(next(addresses), np.int64))
        elif element and not isinstance(type_, ir.MemRefType):
            strides = tuple(s // argument.itemsize for s in argument.strides)
            values.append(triton.DescriptorValue(memory, next(addresses), argument.shape, strides, element))
        elif element:
            per_byte = 8 // element.bits if element.shares_bytes else 1
            strides = tuple(
                s // argument.itemsize * (per_byte if d else 1) for d, s in _from_innermost(argument.strides)
            )
            shape = tuple(n * (1 if d else per_byte) for d, n in _from_innermost(argument.shape))
            if per_byte > 1 and type_.has_static_shape:
                shape = tuple(type_.shape)
            values.append(MemRef(memory, next(addresses), 0, shape, strides, element))
        else:
            values.append(_number(argument, str(type_), titles[i]))
    for i, pointed in tables.items():
        arguments[i][:] = [*itertools.islice(addresses, len(pointed))]
    return values


def _from_innermost(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(len(numbers) - 1 - i, n) for i, n in enumerate(numbers)]


def _element_in_memory(type_: ir.Type, title: str) -> ElementType | None:
    """The elements of the array that an argument of a type is; None for a number or vector."""
    try:
        if isinstance(type_, ir.MemRefType):
            return element_of(str(type_.element_type))
        if Ptr.matches(type_):
            return element_of(Ptr.of(type_).pointee)
        return element_of(TritonDesc.of(type_).element) if TritonDesc.matches(type_) else None
    except Fault as e:
        raise ValueError(f"{title} {e}") from None


def _array(argument: Any, type_: ir.Type, element: ElementType, title: str) -> np.ndarray[Any, Any]:
    if not isinstance(argument, np.ndarray):
        raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
    check_numbers(argument, title)
    if element.is_float and not element.shares_bytes:
        dtype_matches = argument.dtype == element.dtype
    elif element.bits < 8:
        dtype_matches = argument.dtype.itemsize == 1 and argument.dtype.kind in "iub"
    else:
        dtype_matches = argument.dtype.kind in "iu" and argument.dtype.itemsize == element.bytes
    if not dtype_matches:
        legal_dtypes = f"{element.name} or, packed, of uint8" if element.shares_bytes else element.name
        raise TypeError(f"{title} must be an array of {legal_dtypes}, but got an array of {argument.dtype}")
    if not isinstance(type_, ir.MemRefType):
        if TritonDesc.matches(type_) and argument.ndim != len(TritonDesc.of(type_).shape):
            raise ValueError(f"{title} cannot be an array of shape {argument.shape}")
        return argument
    static_extents: Sequence[int | None] = [
        None if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)
    ]
    if element.shares_bytes:
        static_extents = packed_shape(static_extents, element.name)
    if len(static_extents) != argument.ndim or any(w not in (None, n) for w, n in zip(static_extents, argument.shape)):
        raise ValueError(f"{title} cannot be an array of shape {argument.shape}")
    element_strides = [s // argument.itemsize for s in argument.strides]
    if any(s < 0 or s % argument.itemsize for s in argument.strides):
        raise ValueError(f"{title} cannot be an array of strides {argument.strides} bytes")
    strides, offset = type_.get_strides_and_offset()
    if element.shares_bytes:
        element_strides = [s * (8 // element.bits if d else 1) for d, s in _from_innermost(element_strides)]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if type_.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, type_.context)):
        if not argument.flags.c_contiguous:
            raise ValueError(f"{title} must lie in memory in row-major order; numpy.ascontiguousarray makes it so")
    elif argument.size and any(
        w not in (unknown, have) and n != 1 for w, have, n in zip(strides, element_strides, argument.shape)
    ):
        raise ValueError(f"{title} cannot be an array of strides {tuple(element_strides)} elements")
    elif offset not in (0, unknown):
        raise ValueError(f"{title} begins {offset} elements into its buffer, which no array does; let it be dynamic")
    return argument


def _number(argument: Any, text: str, title: str) -> Any:
    try:
        scalar_kind = kind_of(text)
    except Fault as e:
        raise TypeError(f"{title} {e}") from None
    array = np.asarray(argument)
    if array.size != math.prod(scalar_kind.shape) or (array.ndim and not scalar_kind.is_vector):
        raise TypeError(
            f"{title} must be {'an array of numbers' if scalar_kind.is_vector else 'a number'}, but got {argument!r}"
        )
    if scalar_kind.element.is_float:
        return array.astype(scalar_kind.element.dtype).reshape(scalar_kind.shape)
    try:
        bits = [int(v) & (1 << 64) - 1 for v in array.ravel().tolist()]
    except (TypeError, ValueError):
        raise TypeError(f"{title} must be an integer, but got {argument!r}") from None
    return np.asarray(scalar_kind.element.wrap(np.array(bits, np.uint64).view(np.int64))).reshape(scalar_kind.shape)


class ReferenceKernel:
    """A kernel that is not lowered: its module is evaluated op by op.

    Attributes:
        name: the kernel's name.
        types: see `runtime.kernel.Kernel.types`.
        subgroups: the number of subgroups of a workgroup if the kernel's maps define it; otherwise None.
        block: see `runtime.kernel.Kernel.block`.
        names: see `runtime.kernel.Kernel.names`.
        argument_names: the names of the arguments in the kernel's text.
    """

    def __init__(self, module: Module, name: str, model: Model) -> None:
        """Make a kernel of a module; see `compile`."""
        self._module, self._model = module, model
        self.names: Sequence[str] = ()
        self.name = name
        func = kernel_of(module, name)
        self.types = tuple(map(str, types_of(func)))
        self.argument_names = argument_names(func, module.sources)
        block_size = func.attributes.get("known_block_size")
        self.subgroups = xetile.subgroups_of_kernel(func)
        self.block = tuple(ir.DenseI32ArrayAttr(block_size)) if block_size is not None else (self.subgroups or 1,)

    def __call__(
        self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
    ) -> None:
        """Evaluate the kernel. Arguments and errors are those of `runtime.kernel.Kernel.__call__`."""
        block = block_of(block, self.block, self.subgroups)
        run(self._module, self.name, arguments, grid=grid, block=block, model=self._model, names=self.names)
