"""Steps that turn a kernel into an executable, each alone."""

from types import SimpleNamespace

import pytest
from mlir import ir

from xegpu_py import lower_kernel
from xegpu_py.ir.module import parse

STRIDED = "memref<?x?xf32, strided<[?, ?]>>"
KERNELS = f"""module {{ gpu.module @m {{
  gpu.func @k(%a: {STRIDED}, %n: index, %b: memref<?x?xf32>, %c: {STRIDED}, %d: memref<4xf32, strided<[?]>>) kernel {{
    gpu.return }}
  gpu.func @plain(%b: memref<?x?xf32>) kernel {{ gpu.return }} }} }}"""


@pytest.mark.parametrize(("strided", "marked"), [((), [0, 3, 4]), ((3,), [0, 4]), ((0, 3, 4), []), ((1,), [0, 3, 4])])
def test_arrays_whose_innermost_stride_is_assumed(strided, marked):
    """Those of unknown innermost stride that a call does not find to be others."""
    module = parse(KERNELS)
    lower_kernel._mark_unit_strides(module, "k", strided)
    lower_kernel._mark_unit_strides(module, "plain", strided)
    named = {str(op.attributes["sym_name"]): op for op in module.operation.regions[0].blocks[0].operations}
    kernels = {k.attributes["sym_name"].value: k for k in named['"m"'].regions[0].blocks[0].operations}
    assert list(ir.DenseI64ArrayAttr(kernels["k"].attributes[lower_kernel.UNIT_STRIDES])) == marked
    assert lower_kernel.UNIT_STRIDES not in kernels["plain"].attributes


@pytest.mark.parametrize("host", [False, True])
def test_other_kernels_are_not_lowered(host):
    """But in a module of host code, whose launches name them."""
    module = parse(KERNELS.replace("module {", "module @h {", 1))
    if host:
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
    lower_kernel._leave_out_other_kernels(module, "plain")
    assert ("@k(" in str(module), "@plain(" in str(module)) == (host, True)


@pytest.mark.parametrize(("order", "marked"), [("", False), ("flat", True)])
def test_the_order_of_reductions_is_an_attribute(order, marked):
    module = parse(KERNELS)
    lower_kernel._mark_reduction_order(module, SimpleNamespace(reduction_order=order))
    found = module.operation.attributes
    assert (lower_kernel.REDUCTION_ORDER in found) == marked
    assert not marked or ir.StringAttr(found[lower_kernel.REDUCTION_ORDER]).value == order
