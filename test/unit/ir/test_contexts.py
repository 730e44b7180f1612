"""Contexts that are used again: nothing of an earlier use is seen, and nothing that lives shares one."""

import gc

import numpy as np
import pytest
from mlir import ir

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.dialects.visa import DIALECT as VISA
from xegpu_py.ir import context as contexts
from xegpu_py.ir.builtin import shape_of
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import parse_source

UNREGISTERED = '"nowhere.nothing"() : () -> ()'


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    monkeypatch.setattr(contexts, "_pool", [])


def test_a_context_to_which_nothing_refers_is_used_again():
    first = id(Context.from_pool())
    assert id(Context.from_pool()) == first


@pytest.mark.parametrize("held", [lambda c: c, lambda c: ir.Type.parse("i32", c), lambda c: ir.Location.unknown(c)])
def test_what_lives_keeps_its_context(held):
    context = Context.from_pool()
    lives = held(context)
    number = id(context)
    del context
    assert id(Context.from_pool()) != number
    del lives
    assert id(Context.from_pool()) == number


def test_modules_that_live_have_contexts_of_their_own():
    texts = ["func.func @f() {\n  return\n}", "func.func @g() {\n  return\n}"]
    first, second = map(xegpu_py.parse, texts)
    assert first.context is not second.context
    number = id(first.context)
    del first
    assert id(xegpu_py.parse(texts[0]).context) == number


def test_nothing_of_earlier_uses_is_seen():
    context = Context.from_pool()
    fresh = context.irdl_dialects
    context.load(("visa", "tt"))
    context.allow_unregistered_dialects = True
    number = id(context)
    del context
    context = Context.from_pool()
    assert id(context) == number
    assert context.irdl_dialects == fresh == Context().irdl_dialects
    with pytest.raises(DiagnosticError, match="unregistered"):
        parse_source(Source(UNREGISTERED, "k.mlir"), context=context)
    # It is defined already, and known again when a text names it.
    context.load(("visa",))
    assert VISA in context.irdl_dialects


def test_a_context_is_used_a_number_of_times():
    first = Context.from_pool()
    number = id(first)
    del first
    for _ in range(contexts._MOST_USES - 1):
        context = Context.from_pool()
        assert id(context) == number
        del context
    assert not contexts._pool
    kept = [Context.from_pool() for _ in range(2 * contexts._POOL_SIZE)]
    assert len(contexts._pool) == contexts._POOL_SIZE
    assert len({id(context) for context in kept}) == len(kept)


def test_memoised_types_keep_no_context():
    context = Context.from_pool()
    number = id(context)
    assert shape_of(ir.Type.parse("vector<2x3xf32>", context)) == (2, 3)
    del context
    assert id(Context.from_pool()) == number


def test_cycles_only_delay_the_next_use():
    context = Context.from_pool()
    number = id(context)
    cycle = [context]
    cycle.append(cycle)
    del context, cycle
    assert id(Context.from_pool()) != number
    gc.collect()
    # The one above is free too, and was kept later.
    assert id(Context.from_pool()) == number


KERNEL = """
gpu.module @m {
  gpu.func @k(%x: memref<16xf32>) kernel {
    gpu.return
  }
}
"""


def _call_of_mlir(number):
    xegpu_py.compile(KERNEL.replace("@k", f"@k{number}"))(np.zeros(16, np.float32), grid=1)


def _call_of_tiles(_):
    @xl.jit
    def kernel(x):
        xl.store(x + xl.arange(0, 16), 1.0)

    kernel[1](np.zeros(16, np.float32))


@pytest.mark.parametrize("call", [_call_of_mlir, _call_of_tiles])
def test_kernels_that_were_called_give_back_their_context(call):
    """They are no part of a cycle, which would live until the next garbage collection."""
    gc.collect()
    gc.disable()
    try:
        for number in range(4):
            call(number)
    finally:
        gc.enable()
    # The last kernel's context may be in use until the next one.
    assert len(contexts._pool) <= 2
