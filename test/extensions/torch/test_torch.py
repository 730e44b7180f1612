"""Tensors of PyTorch as arguments of kernels, and kernels as its custom ops. Skipped where PyTorch is missing."""

import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

torch = pytest.importorskip("torch")
ops = pytest.importorskip("xegpu_py.extensions.torch")


@xegpu_py.jit
def add(X, Y, Z, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    xl.store(Z + i, xl.load(X + i, mask=i < n) + xl.load(Y + i, mask=i < n), mask=i < n)


@xegpu_py.jit
def scale(X, SUM, factor: xl.float32, BLOCK: Constexpr):
    i = xl.arange(0, BLOCK)
    x = xl.load(X + i) * factor
    xl.store(X + i, x)
    SUM[0] = x.sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_tensors_are_not_copied(dtype):
    x, y = torch.arange(300).to(dtype), torch.ones(300).to(dtype)
    z = torch.zeros(300, dtype=dtype)
    address = z.data_ptr()
    add[cdiv(300, 128)](x, y, z, 300, BLOCK=128)
    assert torch.equal(z, x + y) and z.data_ptr() == address
    add[1](x.requires_grad_() if dtype.is_floating_point else x, y, z[100:], 128, BLOCK=128)
    assert torch.equal(z[100:228].detach(), (x + y)[:128].detach())


def test_ops_are_compiled_in_graphs():
    empty = {"Z": lambda X: torch.empty_like(X)}
    op = ops.custom_op("xegpu_test::add", add, lambda v: cdiv(v["n"], 128), empty, scalars={"n": int}, BLOCK=128)
    calls = []

    def counted(graph, inputs):
        calls.append(graph)
        return graph.forward

    @torch.compile(backend=counted, fullgraph=True)
    def twice(x, y):
        return op(x, y, x.shape[0]) * 2

    x, y = torch.arange(300.0), torch.ones(300)
    assert torch.equal(twice(x, y), (x + y) * 2) and torch.equal(twice(y, x), (x + y) * 2)
    assert len(calls) == 1
    torch.library.opcheck(op, (x, y, 300))


def test_ops_change_their_arguments():
    op = ops.custom_op("xegpu_test::scale", scale, 1, {"SUM": lambda X: X.new_empty(1)}, ["X"], BLOCK=64)
    x = torch.arange(64.0)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def scaled(x):
        return op(x, 3.0) + x[1]

    assert scaled(x).item() == 3 * 2016 + 3
    np.testing.assert_array_equal(x.numpy(), np.arange(64) * 3)


def test_annotations_that_are_strings():
    """They stay strings where one names a thing that is imported for type checkers alone."""

    @xegpu_py.jit
    def filled(Y: "Tensor", VALUE: "Constexpr"):  # noqa: F821
        Y[0] = VALUE

    with pytest.raises(TypeError, match="'VALUE' is known at compile time: give it as a constant"):
        ops.custom_op("t::filled", filled, 1)


def test_mistakes():
    with pytest.raises(TypeError, match="op 't::a' names 'Q', but kernel 'add' has no such parameter"):
        ops.custom_op("t::a", add, 1, changed=["Q"])
    with pytest.raises(TypeError, match="'BLOCK' is known at compile time: give it as a constant"):
        ops.custom_op("t::a", add, 1)
    with pytest.raises(ValueError, match="'X' is one of results, changed, scalars and constants, not several"):
        ops.custom_op("t::a", add, 1, changed=["X"], scalars={"X": int}, BLOCK=1)
    with pytest.raises(TypeError, match="'n' is int, float or bool, not <class 'str'>"):
        ops.custom_op("t::a", add, 1, scalars={"n": str}, BLOCK=1)
