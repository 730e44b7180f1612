"""The search for LLVM's library, and the behaviour without it."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from xegpu_py import Kernel
from xegpu_py.engines.jit import llvm
from xegpu_py.runtime.launch import default_engine

KERNEL = """
.version 3.8
.kernel "k"
.decl P v_type=G type=uq num_elts=1
.decl X v_type=G type=d num_elts=16 align=GRF
.input P offset=64 size=8
.kernel_attr SimdSize=16
    mov (M1_NM, 16) X(0,0)<1> 0x7:d
    lsc_store.ugm (M1_NM, 1) flat[P]:a64 X:d32x16t
    ret (M1, 1)
"""


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Hides packages, as an environment that lacks them does."""
    find = importlib.util.find_spec

    def forget() -> None:
        for cached in (llvm._library, llvm.available, llvm.machine, llvm.major_version, default_engine):
            cached.cache_clear()

    def hidden(*names: str) -> None:
        def found(name: str, package: str | None = None) -> ModuleSpec | None:
            return None if name in names else find(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", found)
        forget()

    yield hidden
    monkeypatch.undo()
    forget()


def run() -> None:
    out = np.zeros(16, np.int32)
    Kernel.from_assembly(KERNEL)(out)
    np.testing.assert_array_equal(out, np.full(16, 7))


def test_the_library_inside_the_bindings_will_do(hide: Callable[..., None]) -> None:
    hide("llvm")
    assert llvm.available()
    assert "mlir" in llvm._library()._name
    run()


def test_without_a_library_kernels_are_interpreted_and_it_is_said_once(
    hide: Callable[..., None], recwarn: pytest.WarningsRecorder
) -> None:
    hide("llvm", "mlir")
    assert not llvm.available()
    run()
    run()
    [warning] = [w for w in recwarn if "LLVM's library is not found" in str(w.message)]
    assert warning.category is UserWarning


def test_without_a_library_who_asks_for_native_code_gets_an_error(hide: Callable[..., None]) -> None:
    hide("llvm", "mlir")
    with pytest.raises(RuntimeError, match="LLVM's library is neither beside the MLIR bindings nor inside them"):
        # Another program, because compiled code is kept.
        Kernel.from_assembly(KERNEL.replace("0x7", "0x8"), engine="jit")(np.zeros(16, np.int32))


@pytest.mark.parametrize("level", [0, 2])
def test_an_error_of_code_generation_is_an_exception(level: int) -> None:
    """LLVM ended the process. No architecture has registers for so many operands."""
    count = 40
    arguments = ", ".join(f"i64 %a{n}" for n in range(count))
    call = f'%x = call i64 asm sideeffect "", "=r,{",".join(["r"] * count)}"({arguments})'
    text = f"define i64 @f({arguments}) {{\n  {call}\n  ret i64 %x\n}}\n"
    with pytest.raises(llvm.LLVMError, match="failed: inline assembly requires more registers than available"):
        llvm.compiled(text, llvm.machine(), "verify", level)


CRASHES = """define void @f() {
  call void asm sideeffect "unknown", ""()
  ret void
}
"""


def test_a_crash_is_an_exception_with_the_message(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM's parsers of assembly are not initialized."""
    with pytest.raises(llvm.LLVMAbort, match="failed: LLVM ERROR: Inline asm not supported by this streamer"):
        llvm.compiled(CRASHES, llvm.machine(), "verify", 0)
    assert capfd.readouterr().err.count("Inline asm") == 1


def test_a_crash_that_does_not_happen_again_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    once, compiled = [CRASHES], llvm._compiled
    monkeypatch.setattr(llvm, "_compiled", lambda text, *options: compiled(once.pop() if once else text, *options))
    assert llvm.compiled("define void @f() {\n  ret void\n}\n", llvm.machine(), "verify", 0)


def test_code_with_many_accesses_of_memory_is_compiled_in_linear_time() -> None:
    """LLVM compares each access with those before it: eight times as many took 26 times as long."""

    def seconds(count: int) -> float:
        lines = []
        for i in range(count):
            lines += [f"%p{i} = getelementptr i8, ptr %a, i64 {64 * i}", f"%q{i} = getelementptr i8, ptr %b, i64 {i}"]
            lines += [f"%x{i} = load <16 x i32>, ptr %p{i}", f"%y{i} = load <16 x i32>, ptr %q{i}"]
            lines += [f"%z{i} = add <16 x i32> %x{i}, %y{i}", f"store <16 x i32> %z{i}, ptr %p{i}"]
        text = "\n".join(["define void @f(ptr %a, ptr %b) {", *lines, "ret void", "}", ""])
        start = time.thread_time()
        llvm.compiled(text, llvm.machine(), "function(sroa)", level=2)
        return time.thread_time() - start

    # Other processes of the machine only add time.
    many = few = math.inf
    for attempt in range(12):
        many, few = min(many, seconds(800)), min(few, seconds(100))
        if attempt > 2 and many < 15 * few:
            break
    assert many < 15 * few
