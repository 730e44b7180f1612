"""Jumps, divergent lanes and barriers against emulations that run one lane, or one thread, at a time."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.engines import interpreter
from xegpu_py.engines.jit import thread_function
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime import launch

from .structured import ENGINE, LANES, MASK32, SIZES, emulate, kernel, lanes_of, statements, thread_number

# Loops whose trips differ by thread.

COLLATZ = """\
    add (M1_NM, 1) T(0,0)<1> Thread(0,0)<0;1,0> 1:ud
    mov (M1_NM, 1) S(0,0)<1> 0:ud
Again:
    cmp.eq (M1_NM, 1) P T(0,0)<0;1,0> 1:ud
    (P) jmp (M1, 1) Done
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 1:ud
    and (M1_NM, 1) S(0,1)<1> T(0,0)<0;1,0> 1:ud
    cmp.ne (M1_NM, 1) P S(0,1)<0;1,0> 0:ud
    (P) jmp (M1, 1) Odd
    shr (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 1:ud
    jmp (M1, 1) Again
Odd:
    mad (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 3:ud 1:ud
    jmp (M1, 1) Again
Done:
    shl (M1_NM, 1) At(0,0)<1> Thread(0,0)<0;1,0> 2:ud
    add (M1_NM, 1) At(0,0)<1> At(0,0)<0;1,0> Out(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    ret (M1, 1)
"""


@pytest.mark.parametrize("longest", [1, 3, 500])
@pytest.mark.parametrize("with_goto", [False, True])
def test_loops_of_threads(with_goto: bool, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_function, "_LONGEST", longest)

    def steps(n: int) -> int:
        found = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            found += 1
        return found

    body = thread_number(5) + COLLATZ
    if with_goto:
        body = body.replace("jmp (M1, 1) Odd", "goto (M1, 1) Odd").replace("jmp (M1, 1) Done", "goto (M1, 1) Done")
    out = np.zeros(35, np.uint32)
    done = kernel(body)(out, grid=7, block=5)
    assert out.tolist() == [steps(n + 1) for n in range(35)]
    assert done.executed[-1] == 35


@settings(max_examples=examples(250, 0.1))
@given(
    statements(3),
    st.sampled_from(sorted(SIZES)),
    st.integers(0, 1000),
    st.sampled_from([0, 1, 256]),
    st.sampled_from([8, 400]),
)
def test_structured_programs(program: list[object], size: str, seed: int, patience: int, longest: int) -> None:
    """The result does not depend on the order of divergent threads, nor on the number of native functions."""
    body, declarations, values = lanes_of(program, size, 4, seed)
    out = values.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_PATIENCE", patience)
        patch.setattr(thread_function, "_LONGEST", longest)
        kernel(thread_number(2) + body, declarations)(out, grid=2, block=2)
    want = values.copy()
    for thread in range(4):
        for lane in SIZES[size]:
            state = [int(x) for x in values[thread, :, lane]]
            emulate(program, state)
            want[thread, :, lane] = state
    np.testing.assert_array_equal(out, want)


def run(
    body: str, words: int = 64, grid: int = 1, block: int = 1, declarations: str = "", **options: object
) -> list[int]:
    """The words that a kernel writes."""
    out = np.zeros(words, np.uint32)
    kernel(body, declarations, **options)(out, grid=grid, block=block)
    return [int(x) for x in out]


STORE = """\
    mov (M1_NM, 16) At(0,0)<1> Out(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
"""


def test_where_all_lanes_leave_nothing_runs() -> None:
    """Lanes that no goto has, here 16 to 31, do not stay behind and run what the others have left."""
    body = (
        LANES
        + """\
    mov (M1_NM, 1) S(0,0)<1> 0:ud
    cmp.ge (M1, 16) P Lane(0,0)<8;8,1> 0:ud
    (P) goto (M1, 16) Over
    mov (M1_NM, 1) S(0,0)<1> 1:ud
    barrier
Over:
"""
        + STORE
        + "    ret (M1, 1)\n"
    )
    assert run(body)[0] == 0


def test_loop_that_lanes_leave_by_a_forward_goto_ends() -> None:
    body = (
        LANES
        + """\
    mov (M1_NM, 16) T(0,0)<1> 0:ud
    mov (M1_NM, 1) S(0,0)<1> 0:ud
Again:
    cmp.ge (M1, 16) P T(0,0)<8;8,1> Lane(0,0)<8;8,1>
    (P) goto (M1, 16) End
    add (M1, 16) T(0,0)<1> T(0,0)<8;8,1> 1:ud
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 1:ud
    goto (M1, 16) Again
End:
"""
        + STORE
        + "    ret (M1, 1)\n"
    )
    assert run(body)[0] == 15


def test_gotos_of_some_lanes_leave_the_others() -> None:
    """A goto of lanes 0 to 7 within one of lanes 0 to 15: lanes 8 to 15 continue at the next instruction."""
    body = (
        LANES
        + """\
    mov (M1_NM, 16) T(0,0)<1> 0:ud
    goto (M1, 8) Over
    add (M1, 16) T(0,0)<1> T(0,0)<8;8,1> 1:ud
Over:
    add (M1, 16) T(0,0)<1> T(0,0)<8;8,1> 2:ud
    cmp.lt (M1, 16) P Lane(0,0)<8;8,1> 4:ud
    (P) goto (M1, 16) End
    add (M1, 16) T(0,0)<1> T(0,0)<8;8,1> 4:ud
End:
    shl (M1_NM, 16) Lane(0,0)<1> Lane(0,0)<8;8,1> 2:ud
    add (M1_NM, 16) At(0,0)<1> Lane(0,0)<8;8,1> Out(0,0)<0;1,0>
    lsc_store.ugm (M1_NM, 16) flat[At]:a64 T.0:d32
    ret (M1, 1)
"""
    )
    assert run(body)[:16] == [2] * 4 + [6] * 4 + [7] * 8


@pytest.mark.each_value
@pytest.mark.parametrize("control", ["any", "all"])
@pytest.mark.parametrize("inverted", ["", "!"])
@pytest.mark.parametrize("jump", ["jmp (M1, 1)", "goto (M1, 16)"])
@pytest.mark.parametrize("bits", [0, 0xFFFF, 0x8000, 0x7FFF])
def test_jumps_on_any_and_all(control: str, inverted: str, jump: str, bits: int) -> None:
    body = f"""\
    mov (M1_NM, 1) S(0,0)<1> 0:ud
    setp (M1_NM, 16) R {bits:#x}:uw
    ({inverted}R.{control}) {jump} Over
    mov (M1_NM, 1) S(0,0)<1> 1:ud
Over:
{STORE}    ret (M1, 1)
"""
    joined = bits != 0 if control == "any" else bits == 0xFFFF
    jumps = joined != bool(inverted)
    assert run(body, declarations=".decl R v_type=P num_elts=16")[0] == (not jumps)


def test_jmp_takes_the_first_bit_even_of_a_disabled_lane() -> None:
    body = (
        LANES
        + f"""\
    mov (M1_NM, 1) S(0,0)<1> 0:ud
    cmp.lt (M1, 16) P Lane(0,0)<8;8,1> 8:ud
    (P) goto (M1, 16) Lower
    (P) jmp (M1, 1) End
    mov (M1_NM, 1) S(0,0)<1> 1:ud
    goto (M1, 16) End
Lower:
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 2:ud
End:
{STORE}    ret (M1, 1)
"""
    )
    assert run(body)[0] == 2


# Threads of a workgroup.


@pytest.fixture(params=["interpreter", "jit"], scope="module", autouse=True)
def engine(request: pytest.FixtureRequest) -> None:
    """Each test runs on both engines."""
    ENGINE[0] = request.param


ADDRESS = """\
    shl (M1_NM, 1) T(0,0)<1> Thread(0,0)<0;1,0> 2:ud
    add (M1_NM, 1) At(0,0)<1> Out(0,0)<0;1,0> T(0,0)<0;1,0>
"""


@pytest.mark.native
def test_a_number_that_becomes_a_predicate() -> None:
    """A byte is inserted into the number before, which LLVM 22 must not do in a mask register."""
    body = """\
    mov (M1_NM, 1) At(0,0)<1> Out(0,0)<0;1,0>
    lsc_load.ugm (M1_NM, 1) T.0:d32x4t flat[At]:a64
    jmp (M1, 1) Here
Here:
    and (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 0xffffff00:ud
    or (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> Byte(0,0)<0;1,0>
    setp (M1_NM, 32) P T(0,0)<0;1,0>
    mov (M1_NM, 32) S(0,0)<1> 0:ud
    (P) mov (M1_NM, 32) S(0,0)<1> 1:ud
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32x32t
    ret (M1, 1)
"""
    out = np.array([0x12345678, 0, 0xAB, *[0] * 29], np.uint32)
    kernel(body, ".decl Byte v_type=G type=ub num_elts=4 align=dword alias=<T,8>")(out)
    assert out.tolist() == [0x123456AB >> bit & 1 for bit in range(32)]


def test_ring_through_local_memory() -> None:
    """Each thread passes a number to the next one, once per thread. There are many more threads than run at once."""
    threads, groups = 8, 3 * launch.THREADS_AT_ONCE // 8 // 2
    body = (
        thread_number(threads)
        + ADDRESS
        + """\
    shl (M1_NM, 1) Local(0,0)<1> Id(0,0)<0;1,0> 2:ud
    add (M1_NM, 1) Local(1,0)<1> Local(0,0)<0;1,0> 4:ud
    and (M1_NM, 1) Local(1,0)<1> Local(1,0)<0;1,0> 31:ud
    mov (M1_NM, 1) S(0,0)<1> Thread(0,0)<0;1,0>
    mov (M1_NM, 1) T(0,0)<1> 0:ud
Again:
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
    lsc_fence.slm.none.group
    barrier
    lsc_load.slm (M1_NM, 1) S.0:d32 flat[Local.64]:a32
    barrier
    mad (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 3:ud Id(0,0)<0;1,0>
    add (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 1:ud
    cmp.lt (M1_NM, 1) P T(0,0)<0;1,0> 5:ud
    (P) jmp (M1, 1) Again
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    ret (M1, 1)
"""
    )
    want = []
    for group in range(groups):
        held = [group * threads + t for t in range(threads)]
        for _ in range(5):
            held = [(held[(t + 1) % threads] * 3 + t) & MASK32 for t in range(threads)]
        want += held
    assert run(body, words=groups * threads, grid=groups, block=threads) == want


def test_split_barriers_let_work_go_on_between() -> None:
    """Threads that signal early need not wait for those that signal late; none passes before all have signalled."""
    body = (
        thread_number(4)
        + ADDRESS
        + """\
    shl (M1_NM, 1) Local(0,0)<1> Id(0,0)<0;1,0> 2:ud
    mov (M1_NM, 1) Local(1,0)<1> 0:ud
    add (M1_NM, 1) S(0,0)<1> Thread(0,0)<0;1,0> 1:ud
    mov (M1_NM, 1) T(0,0)<1> Id(0,0)<0;1,0>
Delay:
    add (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> -1:d
    cmp.lt (M1_NM, 1) P T(0,0)<0;1,0> 4:ud
    (P) jmp (M1, 1) Delay
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
    sbarrier.signal
    mul (M1_NM, 1) S(0,1)<1> S(0,0)<0;1,0> 1000:ud
    sbarrier.wait
    lsc_load.slm (M1_NM, 1) T.0:d32x4t flat[Local.64]:a32
    add (M1_NM, 1) S(0,0)<1> T(0,0)<0;1,0> T(0,1)<0;1,0>
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> T(0,2)<0;1,0>
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> T(0,3)<0;1,0>
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> S(0,1)<0;1,0>
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    ret (M1, 1)
"""
    )
    want = [sum(4 * g + t + 1 for t in range(4)) + 1000 * (4 * g + i + 1) for g in range(6) for i in range(4)]
    assert run(body, words=24, grid=6, block=4) == want


def test_named_barriers_of_pairs() -> None:
    """Threads 2i produce for 2i + 1 at barrier i; pairs do not wait for each other."""
    body = (
        thread_number(8)
        + ADDRESS
        + """\
    shr (M1_NM, 1) Pair(0,0)<1> Id(0,0)<0;1,0> 1:ud
    mov (M1_NM, 1) Name(0,0)<1> Pair(0,0)<0;1,0>
    shl (M1_NM, 1) Local(0,0)<1> Pair(0,0)<0;1,0> 2:ud
    and (M1_NM, 1) T(0,0)<1> Id(0,0)<0;1,0> 1:ud
    cmp.ne (M1_NM, 1) P T(0,0)<0;1,0> 0:ud
    mov (M1_NM, 1) T(0,0)<1> 0:ud
    mov (M1_NM, 1) S(0,0)<1> 0:ud
Again:
    (P) jmp (M1, 1) Consume
    mov (M1_NM, 1) S(0,1)<1> Pair(0,0)<0;1,0>
Delay:
    add (M1_NM, 1) S(0,1)<1> S(0,1)<0;1,0> -1:d
    cmp.lt (M1_NM, 1) Q S(0,1)<0;1,0> 8:ud
    (Q) jmp (M1, 1) Delay
    mad (M1_NM, 1) S(0,0)<1> Thread(0,0)<0;1,0> 10:ud T(0,0)<0;1,0>
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
    nbarrier.signal Name(0,0)<0;1,0> 2:ub
    nbarrier.wait Name(0,0)<0;1,0>
    nbarrier.signal Name(0,0)<0;1,0> 2:ub
    nbarrier.wait Name(0,0)<0;1,0>
    jmp (M1, 1) Next
Consume:
    nbarrier.signal Name(0,0)<0;1,0> 2:ub
    nbarrier.wait Name(0,0)<0;1,0>
    lsc_load.slm (M1_NM, 1) S.64:d32 flat[Local]:a32
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> S(1,0)<0;1,0>
    nbarrier.signal Name(0,0)<0;1,0> 2:ub
    nbarrier.wait Name(0,0)<0;1,0>
Next:
    add (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 1:ud
    and (M1_NM, 1) Trips(0,0)<1> Pair(0,0)<0;1,0> 3:ud
    add (M1_NM, 1) Trips(0,0)<1> Trips(0,0)<0;1,0> 2:ud
    cmp.lt (M1_NM, 1) Q T(0,0)<0;1,0> Trips(0,0)<0;1,0>
    (Q) jmp (M1, 1) Again
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    ret (M1, 1)
"""
    )
    declarations = """\
.decl Pair v_type=G type=ud num_elts=1 align=dword
.decl Trips v_type=G type=ud num_elts=1 align=dword
.decl Name v_type=G type=ub num_elts=1 align=dword"""
    want = []
    for thread in range(24):
        producer, trips = thread // 2 * 2, thread % 8 // 2 + 2
        numbers = [10 * producer + i for i in range(trips)]
        want.append(sum(numbers) if thread % 2 else numbers[-1])
    assert run(body, words=24, grid=3, block=8, declarations=declarations) == want


def test_each_thread_signals_a_barrier_once() -> None:
    """Thread 0 waits at the workgroup's barrier while the others pass named ones, which does not signal for it."""
    body = (
        thread_number(3)
        + ADDRESS
        + """\
    mov (M1_NM, 1) Local(0,0)<1> 0:ud
    mov (M1_NM, 1) S(0,0)<1> 5:ud
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) Meet
    nbarrier.signal 1:ub 2:ub
    nbarrier.wait 1:ub
    nbarrier.signal 0:ub 2:ub
    nbarrier.wait 0:ub
    nbarrier.signal 1:ub 2:ub
    nbarrier.wait 1:ub
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
Meet:
    barrier
    lsc_load.slm (M1_NM, 1) T.0:d32 flat[Local]:a32
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 T.0:d32
    ret (M1, 1)
"""
    )
    early = body.replace("    (P) jmp (M1, 1) Meet\n", "    (P) jmp (M1, 1) Early\n").replace(
        "    nbarrier.signal 1:ub 2:ub\n    nbarrier.wait 1:ub\n    nbarrier.signal 0",
        "    jmp (M1, 1) Others\nEarly:\n    barrier\n    jmp (M1, 1) Read\nOthers:\n"
        "    nbarrier.signal 1:ub 2:ub\n    nbarrier.wait 1:ub\n    nbarrier.signal 0",
    )
    early = early.replace("    lsc_load.slm", "Read:\n    lsc_load.slm")
    for text in (body, early):
        assert run(text, words=6, grid=2, block=3) == [5] * 6


def test_threads_that_poll_let_others_run() -> None:
    """Thread 0 polls a flag that thread 1 sets; otherwise later instructions would never run."""
    body = (
        thread_number(2)
        + ADDRESS
        + """\
    mov (M1_NM, 16) Local(0,0)<1> 0:ud
    mov (M1_NM, 1) S(0,0)<1> 0:ud
    mov (M1_NM, 1) T(0,0)<1> 0:ud
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 1:ud
    (P) jmp (M1, 1) Set
Poll:
    lsc_load.slm (M1_NM, 1) T.0:d32 flat[Local]:a32
    cmp.eq (M1_NM, 1) Q T(0,0)<0;1,0> 0:ud
    (Q) jmp (M1, 1) Poll
    mov (M1_NM, 1) S(0,0)<1> T(0,0)<0;1,0>
    jmp (M1, 1) End
Set:
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> 1:ud
    cmp.lt (M1_NM, 1) Q S(0,0)<0;1,0> 20:ud
    (Q) jmp (M1, 1) Set
    lsc_store.slm (M1_NM, 1) flat[Local]:a32 S.0:d32
End:
    lsc_store.ugm (M1_NM, 1) flat[At]:a64 S.0:d32
    ret (M1, 1)
"""
    )
    assert run(body, words=6, grid=3, block=2) == [20] * 6


def deadlock(body: str, grid: int = 1, block: int = 4) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        kernel(body)(np.zeros(64, np.uint32), grid=grid, block=block)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.position.file == "control.visaasm" and diagnostic.position.line > 20
    return [diagnostic.message, *(n.message for n in diagnostic.notes)]


def test_deadlock_says_who_waits_where() -> None:
    body = """\
    cmp.lt (M1_NM, 1) P Id(0,0)<0;1,0> 2:ud
    (P) jmp (M1, 1) Wait
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 3:ud
    (P) jmp (M1, 1) End
    nbarrier.signal 2:ub 2:ub
    nbarrier.wait 2:ub
Wait:
    barrier
End:
    ret (M1, 1)
"""
    assert deadlock(body) == [
        "deadlock: 3 threads of kernel 'control' wait for signals that never come",
        "workgroup (0, 0, 0), subgroup 2 waits at instruction 5: nbarrier.wait 0x2:ub",
        "workgroup (0, 0, 0), subgroup 0 and 1 more wait at instruction 7: barrier",
        "1 threads of these workgroups have ended",
    ]


def test_deadlock_of_one_workgroup_of_several() -> None:
    body = """\
    cmp.eq (M1_NM, 1) P %group_id_x(0,0)<0;1,0> 2:ud
    (!P) jmp (M1, 1) End
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 0:ud
    (P) jmp (M1, 1) End
    sbarrier.signal
    sbarrier.wait
End:
    ret (M1, 1)
"""
    message, where, ended = deadlock(body, grid=4, block=2)
    assert message == "deadlock: 1 threads of kernel 'control' wait for signals that never come"
    assert where == "workgroup (2, 0, 0), subgroup 1 waits at instruction 5: sbarrier.wait"
    assert ended == "1 threads of these workgroups have ended"


def test_named_barrier_that_is_not_there() -> None:
    body = """\
    mov (M1_NM, 1) Name(0,0)<1> Id(0,0)<0;1,0>
    nbarrier.signal Name(0,0)<0;1,0> 1:ub
    ret (M1, 1)
"""
    with pytest.raises(DiagnosticError, match="uses named barrier 4, but the kernel allocates 4") as caught:
        kernel(body, ".decl Name v_type=G type=ub num_elts=1 align=dword")(np.zeros(1, np.uint32), block=8)
    assert "subgroup 4" in str(caught.value)


# Registers that were never written.


def unwritten(body: str, declarations: str = "") -> list[str] | None:
    try:
        kernel(body, declarations, check=["uninit"], engine=ENGINE[0])(np.zeros(64, np.uint32), grid=2, block=2)
    except DiagnosticError as error:
        (diagnostic,) = error.diagnostics
        return [diagnostic.message, *(n.message for n in diagnostic.notes)]
    return None


def test_unwritten_register() -> None:
    body = """\
    mov (M1_NM, 8) S(0,0)<1> 1:ud
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 1:ud
    (!P) jmp (M1, 1) End
    add (M1_NM, 16) T(0,0)<1> S(0,0)<8;8,1> 1:ud
End:
    ret (M1, 1)
"""
    assert unwritten(body) == [
        "'add' reads byte 32 of 'S', which was never written",
        "in workgroup (0, 0, 0), subgroup 1",
        "instruction 3 of kernel 'control': add (M1_NM, 16) T(0,0)<1> S(0,0)<8;8,1> 0x1:ud",
    ]
    assert unwritten(body.replace("mov (M1_NM, 8)", "mov (M1_NM, 16)")) is None


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("    mov (M1_NM, 1) S(0,0)<1> Id(0,0)<0;1,0>\n    mov (M1_NM, 1) S(0,0)<1> %r0(0,2)<0;1,0>\n", None),
        ("    dpas.bf.bf.8.1 (M1, 16) F.0 %null.0 X.0 X(0,0)\n", "'dpas' reads byte 0 of 'X'"),
        ("    lsc_load.ugm (M1_NM, 1) S.0:d32 flat[At]:a64\n", "'lsc_load' reads byte 0 of 'At'"),
        ("    lsc_load_block2d.ugm (M1, 1) X.0:d32.8x8nn flat[Out,0x3f,0x3f,0x3f,T,T]\n", "reads byte 0 of 'T'"),
        ("    nbarrier.wait Name(0,0)<0;1,0>\n", "'nbarrier.wait' reads byte 0 of 'Name'"),
        (
            "    mov (M1_NM, 8) At(0,0)<1> Out(0,0)<0;1,0>\n    lsc_store.ugm (M1_NM, 8) flat[At]:a64 S.0:d32\n",
            "of 'S'",
        ),
        ("    mov (M1_NM, 4) S(0,0)<2> 1:ud\n    mov (M1_NM, 4) T(0,0)<1> S(0,0)<8;4,2>\n", None),
        ("    mov (M1_NM, 4) S(0,0)<2> 1:ud\n    mov (M1_NM, 4) T(0,0)<1> S(0,0)<4;4,1>\n", "reads byte 4 of 'S'"),
        ("    mov (M1_NM, 4) Alias(0,0)<1> 0:uw\n    mov (M1_NM, 2) T(0,0)<1> S(0,0)<8;8,1>\n", None),
        ("    mov (M1_NM, 4) Alias(0,0)<1> 0:uw\n    mov (M1_NM, 4) T(0,0)<1> S(0,0)<8;8,1>\n", "reads byte 8 of 'S'"),
    ],
)
def test_unwritten_operands(body: str, what: str | None) -> None:
    declarations = """\
.decl X v_type=G type=d num_elts=256 align=GRF
.decl F v_type=G type=f num_elts=256 align=GRF
.decl Name v_type=G type=ub num_elts=1 align=dword
.decl Alias v_type=G type=uw num_elts=8 align=word alias=<S,0>"""
    found = unwritten(body + "    ret (M1, 1)\n", declarations)
    if what is None:
        assert found is None
    else:
        assert found and what in found[0]


def test_unwritten_lanes_that_do_not_act_do_not_count() -> None:
    """A branch writes and reads its own lanes only, and a load writes its own lanes only."""
    branch = (
        LANES
        + """\
    cmp.lt (M1, 16) P Lane(0,0)<8;8,1> 8:ud
    mov (M1_NM, 16) At(0,0)<1> Out(0,0)<0;1,0>
    (P) goto (M1, 16) Lower
    mov (M1, 16) S(0,0)<1> 1:ud
    add (M1, 16) S(0,0)<1> S(0,0)<8;8,1> 1:ud
    lsc_store.ugm (M1, 16) flat[At]:a64 S.0:d32
    lsc_load.ugm (M1, 16) T.0:d32 flat[At]:a64
    mov (M1, 16) S(0,0)<1> T(0,0)<8;8,1>
Lower:
{after}    ret (M1, 1)
"""
    )
    assert unwritten(branch.replace("{after}", "")) is None
    read = "    mov (M1, 16) Lane(0,0)<1> {}(0,0)<8;8,1>\n"
    for name in ("S", "T"):
        found = unwritten(branch.replace("{after}", read.format(name)))
        assert found and found[0] == f"'mov' reads byte 0 of '{name}', which was never written"


SHARED_REGISTERS = """\
    mov (M1_NM, 16) S(0,0)<1> 7:ud
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 S:d32x16t
    mov (M1_NM, 8) T(0,1)<1> 1:ud
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 T:d32x16t
    ret (M1, 1)
"""


def test_what_another_variable_left_in_a_register_is_unwritten() -> None:
    """S is not read any more where T begins, so that T can have the registers of S. The rest of T reads as zero."""
    found = unwritten(SHARED_REGISTERS)
    assert found and found[0] == "'lsc_store' reads byte 0 of 'T', which was never written"
    out = np.zeros(64, np.uint32)
    kernel(SHARED_REGISTERS, engine=ENGINE[0])(out)
    assert out[:16].tolist() == [0] + [1] * 8 + [0] * 7


# Too few registers.


def test_variables_that_do_not_fit() -> None:
    big = "\n".join(f".decl Big{n} v_type=G type=f num_elts=1024 align=GRF" for n in range(3))
    body = "".join(f"    mov (M1_NM, 16) Big{n}(0,0)<1> 0x0:f\n" for n in range(3))
    body += "".join(f"    mov (M1_NM, 16) T(0,0)<1> Big{n}(0,0)<8;8,1>\n" for n in range(3)).replace("T(", "F(")
    declarations = big + "\n.decl F v_type=G type=f num_elts=16 align=GRF"
    with pytest.raises(DiagnosticError) as caught:
        kernel(body + "    ret (M1, 1)\n", declarations, strict_grf=True)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message.startswith("kernel 'control' does not fit: register pressure 19")
    assert diagnostic.message.endswith("of 128 GRFs; 2 variables do not fit: Big1, Big2")
    kernel(body + "    ret (M1, 1)\n", declarations, strict_grf=True, registers=256)
    done = kernel(body + "    ret (M1, 1)\n", declarations)(np.zeros(1, np.uint32))
    assert [v.name for v in done.allocation.beyond] == ["Big1", "Big2"]


@pytest.mark.parametrize("jump", [False, True])
def test_long_blocks_are_short_functions(jump: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's time is quadratic in the instructions of a block; functions change neither results nor counts."""
    body = "    mov (M1_NM, 16) S(0,0)<1> 0:ud\n" + "    add (M1_NM, 16) S(0,0)<1> S(0,0)<1;1,0> 1:ud\n" * 600
    if jump:
        body = f"    mov (M1_NM, 1) T(0,0)<1> 0:ud\nAgain:\n{body}    add (M1_NM, 1) T(0,0)<1> T(0,0)<0;1,0> 1:ud\n"
        body += "    cmp.lt (M1_NM, 1) P1 T(0,0)<0;1,0> 3:ud\n    (P1) jmp (M1, 1) Again\n"
    declarations = ".decl P1 v_type=P num_elts=1\n" if jump else ""
    body += STORE + "    ret (M1, 1)\n"
    compiled = kernel(body, declarations)
    parts = thread_function.Blocks(compiled.program).parts
    assert max(map(len, parts)) <= 64 and len(parts) < 15
    found = run(body, 1, declarations=declarations)
    monkeypatch.setattr(thread_function, "_LONGEST", 10**6)
    assert len(thread_function.Blocks(compiled.program).parts) == 1
    assert found == run(body, 1, declarations=declarations) == [600]
