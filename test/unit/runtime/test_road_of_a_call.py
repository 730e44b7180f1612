"""The calls between a user's call of a kernel and native code."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py.engines.jit.native_code import Driver
from xegpu_py.language import program_id
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.specialization import Specialization

MOST_HOPS = 10

TEXT = """
gpu.module @m {
  gpu.func @store(%out: memref<?xi32>) kernel {
    %group = gpu.block_id x
    %value = arith.index_cast %group : index to i32
    memref.store %value, %out[%group] : memref<?xi32>
    gpu.return
  }
}
"""


@xegpu_py.jit
def doubled(X):
    t = X.tile((8, 16), at=(program_id(0) * 8, 0))
    t.store(t.load() * 2)


def hops(call):
    """The names of the functions that are active where native code begins, from the one that `call` calls on."""
    stack, found = [], []

    def note(frame, event, argument):
        if event == "call":
            stack.append(frame.f_code.co_name)
            if frame.f_code is Driver.launch.__code__:
                found.append(stack[1:])
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert found
    return found[0]


def test_a_call_reaches_native_code_in_few_hops():
    kernel, out = xegpu_py.compile(TEXT, cache="off"), np.zeros(8, np.int32)
    x = np.ones((16, 16), np.float32)
    for call, other in (
        (lambda: kernel(out, grid=8), lambda: kernel(np.zeros(8, np.int32), grid=8)),
        (lambda: doubled[2](x), lambda: doubled[2](np.ones((16, 16), np.float32))),
    ):
        call()
        # Another array has another key, and is prepared again.
        for run in (call, other):
            road = hops(run)
            assert len(road) <= MOST_HOPS, " -> ".join(road)
    assert out.tolist() == list(range(8))


def test_versions_are_kept_by_what_a_call_needs_of_them(monkeypatch):
    kernel = xegpu_py.compile(TEXT.replace("memref<?xi32>", "memref<?xi32, strided<[?], offset: ?>>"), cache="off")
    lowered = []
    own = type(kernel._compiler).executable
    monkeypatch.setattr(type(kernel._compiler), "executable", lambda self, o: lowered.append(o) or own(self, o))
    plain, strided = np.zeros(8, np.int32), np.zeros(16, np.int32)[::2]
    assert kernel.version_for([plain], 8) is kernel and not lowered
    version = kernel.version_for([strided], 8)
    assert version is kernel.version_for([np.zeros(32, np.int32)[::4]], 8) is not kernel
    assert len(lowered) == 1 and lowered[0].strided == (0,)
    needed = Specialization.of_call(kernel.executable, kernel.options, [strided], 8)
    assert needed.applied_to(kernel.options) == version.options
    assert isinstance(version, Kernel) and version.version_for([plain], 8) is version, "a version has no versions"
    version(strided, grid=8)
    assert strided.tolist() == list(range(8))


@pytest.mark.parametrize(("shares", "aliased"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_version_for_arrays_that_share_memory_stays_one(shares, aliased):
    kernel = xegpu_py.compile(KEYED, cache="off")
    executable = SimpleNamespace(
        exact_messages=True, parameters=(), limits=(), strided=lambda _: (), shares_changed=lambda _: shares
    )
    options = structs.replace(kernel.options, aliased=aliased, large=True)
    assert Specialization.of_call(executable, options, (), 1).aliased == (shares or aliased)


KEYED = """
gpu.module @m {
  gpu.func @k(%a: memref<?x?xf32>, %b: memref<8xi4>, %x: f32) kernel {
    gpu.return
  }
}
"""


def test_keys_of_prepared_calls():
    """Calls have one key if arrays have the same memory and layout, and numbers the same bits and kind."""
    kernel = xegpu_py.compile(KEYED, cache="off")
    memory, packed = np.zeros(96, np.float32), np.zeros(4, np.uint8)
    a = memory[:24].reshape(4, 6)
    numbers = [True, 1, 1.0, 0.0, -0.0, float("inf"), 2]
    arrays = [a, memory[1:25].reshape(4, 6), memory[:24].reshape(6, 4), memory[:48].reshape(4, 12)[:, ::2],
              a.view(np.int32), a.T]  # fmt: skip
    own = xegpu_py.compile(KEYED.replace("%b: memref<8xi4>, ", ""), cache="off")
    calls = [(array, x, grid, block) for array in arrays for x in numbers for grid in (1, 2) for block in (1, 3)]
    keys = [own._key((array, x), (grid, 1, 1), (block, 1, 1)) for array, x, grid, block in calls]
    assert len(set(keys)) == len(calls)
    assert own._key((memory[:24].reshape(4, 6), float("nan")), 1, 1) == own._key((a, float("nan")), 1, 1)
    # Packed arrays are copied, and numbers of numpy may change.
    assert kernel._key((a, packed, 1.0), 1, 1) is None
    for unknown in (np.float32(1), [1.0], None, np.zeros(1)):
        assert own._key((a, unknown), 1, 1) is None
    assert own._key((a.tolist(), 1.0), 1, 1) is None
