"""`tt-to-xetile`: kernels of TTIR become kernels of XeTile."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from mlir import ir as mlir

from xegpu_py import build
from xegpu_py.collector import collector_paused
from xegpu_py.extensions.triton.lowering import elementwise, inline_asm, memory, regions, tensors
from xegpu_py.extensions.triton.lowering.lowering import Item, Lowering, place_of
from xegpu_py.extensions.triton.lowering.positions import Assumptions, Positions, can_be_position
from xegpu_py.extensions.triton.lowering.regions import function_body
from xegpu_py.extensions.triton.lowering.types import Kind, kind_of
from xegpu_py.extensions.triton.lowering.values import Descriptor, Pointer
from xegpu_py.extensions.triton.settings import NUM_WARPS
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import Module
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.integer_analysis import power_of_two
from xegpu_py.passes.analysis.ir_queries import SHARES
from xegpu_py.passes.analysis.launch_assumptions import LIKELY_MULTIPLES, WINDOWS
from xegpu_py.passes.analysis.tile_division import PREFERRED_SUBGROUPS, can_be_divided
from xegpu_py.target import DEFAULT
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array
from xegpu_py.tiles.tile_values import Value, constant
from xegpu_py.tiles.value_base import BUILDING

VERSION = "1"
"""Of this lowering, a part of the keys of what is made of it."""

RULES = {**elementwise.RULES, **inline_asm.RULES, **memory.RULES, **tensors.RULES, **regions.RULES}

PRIVATE = "private"


@register_pass("tt-to-xetile")
class TtToXeTile(Pass):
    """Lower kernels of TTIR to XeTile.

    Each public function becomes a kernel in a `gpu.module`; functions that it calls are inlined. Pointers become
    arrays and indices, tensors become vectors, and an op becomes what the function of the tile language of the same
    meaning builds. A descriptor becomes its array, extents and strides.

        tt.func public @add(%x: !tt.ptr<f32>, %n: i32) {
          %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
          %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
          %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
          %v = tt.load %q : tensor<64x!tt.ptr<f32>>

    becomes

        gpu.func @add(%x: memref<?xf32>, %n: i32) kernel {
          %r = vector.step : vector<64xindex>
          %t = xetile.init_tile %x, %r : memref<?xf32>, vector<64xindex> -> !xetile.tile<64xf32, ...>
          %v = xetile.load %t : ...

    Integers of TTIR wrap around, and are i32 and i64 here too. With `positions` those of which indices in memory, masks
    and bounds of loops are computed become values of type index, where the arguments of a launch decide whether they
    fit: launches of Triton's check it. `padding` lists the padding of the descriptors among the arguments. With
    `divisions`, integers that are divided by zero fail an assertion.
    """

    target: str = DEFAULT
    positions: bool = False
    padding: str = ""
    divisions: bool = False

    def run(self, op: mlir.Operation) -> None:
        padding = tuple(p for p in self.padding.split(",") if p)
        _lower(op, self.target, padding, not self.positions, self.divisions)


def lowered_to_xetile(
    module: Module,
    *,
    target: str = DEFAULT,
    padding: Sequence[str] = (),
    exact: bool = True,
    divisions: bool = False,
) -> tuple[Module, Assumptions]:
    """Lower a module of TTIR with one kernel, in place.

    Args:
        target: the GPU's name.
        padding: how blocks of the descriptors among the arguments are loaded: "zero" or "nan" for elements out of
            bounds, and "-tf32" after it if the elements are rounded to tf32.
        exact: whether no integers are assumed to fit.
        divisions: whether integers that are divided by zero fail an assertion.

    Returns:
        The module, and what its launches are assumed to satisfy.

    Raises:
        DiagnosticError: if an op cannot be lowered.
    """
    with module.context, mlir.Location.unknown(module.context), collector_paused():
        (assumptions,) = _lower(module.operation, target, padding, exact, divisions)
    module.verify()
    return module, assumptions


def _lower(
    root: mlir.Operation, target: str, padding: Sequence[str], exact: bool, divisions: bool
) -> list[Assumptions]:
    """Lower all public functions of a module, and erase all functions."""
    body = root.regions[0].blocks[0]
    functions = {
        mlir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in body.operations
        if op.operation.name == "func.func"
    }
    kernels = []
    called = {name for func in functions.values() for name in _called(func)}
    for name, func in functions.items():
        if name not in called and _is_public(func):
            kernels.append(_kernel(body, name, func, functions, target, padding, exact, divisions))
    for func in functions.values():
        func.erase()
    return kernels


def _called(func: mlir.Operation) -> list[str]:
    names: list[str] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "func.call":
            names.append(mlir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return mlir.WalkResult.ADVANCE

    func.walk(visit)
    return names


def _is_public(func: mlir.Operation) -> bool:
    attributes = func.attributes
    return "sym_visibility" not in attributes or mlir.StringAttr(attributes["sym_visibility"]).value != PRIVATE


def _kernel(
    body: mlir.Block,
    name: str,
    func: mlir.Operation,
    functions: dict[str, mlir.Operation],
    target: str,
    padding: Sequence[str],
    exact: bool,
    divisions: bool,
) -> Assumptions:
    entry = func.regions[0].blocks[0]
    types: list[str] = []
    locations: list[mlir.Location] = []
    numbers: dict[mlir.Value, int] = {}
    likely_multiples: list[int] = []
    for argument in entry.arguments:
        if can_be_position(argument.type):
            numbers[argument] = len(types)
            likely_multiples += _multiple(func, argument.arg_number, len(types))
        try:
            types += _argument_types(kind_of(argument), func)
        except ValueError as e:
            emit_error(func, f"cannot be lowered: its argument {len(locations)} has the type {argument.type}, but {e}")
        # The location has the user's name of it, by which text names the kernel's arguments, too.
        locations += [argument.location] * (len(types) - len(locations))
    positions = Positions(func, numbers, exact)
    with place_of(func.location), mlir.InsertionPoint.at_block_begin(body):
        BUILDING.enter(target=target, shares=True)
        try:
            with (
                build.gpu_module("kernels"),
                build.kernel(re.sub(r"\W", "_", name), *types) as arguments,
            ):
                low = Lowering(RULES, functions, positions, divisions)
                remaining, pads = iter(arguments), iter(padding)
                for made, location in zip(arguments, locations):
                    mlir.BlockArgument(made).set_location(location)
                for argument in entry.arguments:
                    low.values[argument] = _argument(kind_of(argument), remaining, pads)
                    if argument in positions:
                        low.values[argument] = low.position(argument)
                with low.call(func, name):
                    function_body(low, entry)
                kernel = arguments[0].owner.owner.operation if arguments else None
        finally:
            shares = BUILDING.leave()
    kernel = kernel or body.operations[0].operation.regions[0].blocks[0].operations[0].operation
    kernel.attributes[WINDOWS] = mlir.UnitAttr.get(kernel.context)
    if likely_multiples:
        kernel.attributes[LIKELY_MULTIPLES] = mlir.DenseI64ArrayAttr.get(likely_multiples, kernel.context)
    module = body.owner.operation
    if NUM_WARPS in module.attributes:
        kernel.attributes[PREFERRED_SUBGROUPS] = module.attributes[NUM_WARPS]
    if shares and can_be_divided(kernel):
        kernel.attributes[SHARES] = mlir.UnitAttr.get(kernel.context)
    return positions.assumptions


def _multiple(func: mlir.Operation, number: int, becomes: int) -> list[int]:
    """The pair in `LIKELY_MULTIPLES` of an integer of TTIR that Triton knows to be a multiple of a power of two."""
    of_all = func.attributes.get("arg_attrs")
    attributes = {} if of_all is None else mlir.DictAttr(mlir.ArrayAttr(of_all)[number])
    if "tt.divisibility" not in attributes:
        return []
    divisor = power_of_two(mlir.IntegerAttr(attributes["tt.divisibility"]).value)
    return [becomes, divisor] if divisor > 1 else []


def _argument_types(kind: Kind, func: mlir.Operation) -> list[str]:
    """The types of the arguments of the kernel that an argument of TTIR becomes."""
    if kind.is_descriptor:
        return [f"memref<?x{kind.stored.memory.mlir}>", *["i64"] * (2 * len(kind.shape))]
    if kind.is_pointer:
        return [f"memref<?x{kind.stored.memory.mlir}>"]
    if kind.shape:
        emit_error(func, "takes a tensor, which no launch gives")
    return [kind.stored.mlir]


def _argument(kind: Kind, remaining: Any, padding: Any) -> Item:
    """An argument of TTIR, made of arguments of the kernel."""
    if kind.is_descriptor:
        base = Pointer(Array(next(remaining), kind.stored), None, (), kind.element)
        count = len(kind.shape)
        sizes = [Value(next(remaining), element_types.int64).to(element_types.index) for _ in range(2 * count)]
        strides = (*sizes[count:-1], constant(element_types.index, 1))
        outside, _, rounded = next(padding, "zero").partition("-")
        number = math.nan if outside == "nan" else 0.0
        return Descriptor(base, tuple(sizes[:count]), strides, kind.shape, number, rounded == "tf32")
    if kind.is_pointer:
        return Pointer(Array(next(remaining), kind.stored), None, (), kind.element)
    item = Value(next(remaining), kind.stored)
    return item.to(element_types.bool_) if kind.element == "i1" else item
