"""The native loop over workgroups and their threads, which take turns where they wait for each other."""

from __future__ import annotations

from xegpu_py.engines.access import BUILTIN_OFFSETS
from xegpu_py.engines.jit.code import PTR, Code, Value
from xegpu_py.engines.jit.frame import Status, context_offset

_TURN = 1 << 12
"""Work, as `control` counts it, that a thread may do in loops before others of its workgroup run: little enough that
they find in the caches what it has loaded of matrices that they share, and enough to make the change not matter."""

_ROUNDS = 1 << 14
"""Rounds in which no thread of a workgroup gets to its end or past a barrier before other workgroups may run."""


def driver_text() -> str:
    """The module with the functions `launch`, which runs workgroups, and `resume`, which goes on with one that began.

    It is the same for all programs: what it needs to know of one is in the context.
    """
    functions = [_begin(), _drive(), _launch(), _resume()]
    return "module {\n" + "\n".join(functions) + "\n}\n"


def _field(code: Code, name: str) -> Value:
    return code.at(code.arguments[0], context_offset(name))


def _get(code: Code, name: str, kind: str = "i64") -> Value:
    return code.load(_field(code, name), kind, 8)


def _set(code: Code, name: str, value: Value) -> None:
    code.store(value, _field(code, name), 8)


def _block(code: Code, index: Value) -> Value:
    return code.at(_get(code, "blocks", PTR), code.mul(index, _get(code, "block_bytes")))


def _begin() -> str:
    """The function that makes a workgroup's threads ready."""
    code = Code("begin", [PTR, "i64"], "", '"noinline", "nounwind"')
    group = code.arguments[1]

    for name, size in (("slm", "slm_bytes"), ("barriers", "barrier_bytes")):
        code.line(
            f'"llvm.intr.memset"({_get(code, name, PTR)}, {code.const(0, "i8")}, {_get(code, size)}) '
            f"<{{isVolatile = false}}> : ({PTR}, i8, i64) -> ()"
        )
    columns, rows = _get(code, "grid_x"), _get(code, "grid_y")
    line = code.bin("udiv", group, columns)
    place = [code.bin("urem", group, columns), code.bin("urem", line, rows), code.bin("udiv", line, rows)]
    template, items = _get(code, "template", PTR), _get(code, "items")
    width, depth = _get(code, "block_x"), _get(code, "block_y")

    def ready(index: Value) -> None:
        block = _block(code, index)
        code.line(
            f'"llvm.intr.memcpy"({block}, {template}, {_get(code, "block_bytes")}) <{{isVolatile = false}}> : '
            f"({PTR}, {PTR}, i64) -> ()"
        )
        code.store(code.resize(index, 32, False), code.at(block, 8), 4)
        for name, value in zip(("%group_id_x", "%group_id_y", "%group_id_z"), place):
            code.store(code.resize(value, 32, False), code.at(block, BUILTIN_OFFSETS[name]), 4)
        item = code.mul(index, items)
        row = code.bin("udiv", item, width)
        own = [code.bin("urem", item, width), code.bin("urem", row, depth), code.bin("udiv", row, depth)]

        def write(number: Value) -> None:
            place = code.load(code.at(_get(code, "local_ids", PTR), code.shl(number, 3)), "i64", 8)
            for i, value in enumerate(own):
                code.store(code.resize(value, 32, False), code.at(code.at(block, place), 4 * i), 1)

        code.repeat(_get(code, "local_id_count"), write)

    code.repeat(_get(code, "threads"), ready)
    code.ret()
    return code.text()


def _drive() -> str:
    """The function that runs a workgroup's threads in turns until they have ended."""
    code = Code("drive", [PTR], "i32", '"noinline", "nounwind"')
    live, moved, yielded, rounds = (code.alloca(8, 8) for _ in range(4))
    zero, one = code.const(0, "i64"), code.const(1, "i64")
    code.store(zero, rounds, 8)
    again = code.label()
    code.br(again)
    code.begin(again)
    for slot in (live, moved, yielded, _field(code, "progress")):
        code.store(zero, slot, 8)

    def turn(index: Value) -> None:
        block = _block(code, index)
        status_at = code.at(block, _get(code, "status_offset"))
        run, done = code.label(), code.label()
        before = code.load(status_at, "i32", 4)
        code.cond_br(code.icmp("ne", before, Status.ENDED), run, done)
        code.begin(run)
        _set(code, "budget", code.const(_TURN, "i64"))
        status = code.call(str(_get(code, "thread", PTR)), code.arguments[0], block, result="i32")
        code.store(status, status_at, 4)
        fault, fine = code.label(), code.label()
        code.cond_br(code.icmp("eq", status, Status.FAULT), fault, fine)
        code.begin(fault)
        _set(code, "faulty", index)
        code.ret(code.const(Status.FAULT, "i32"))
        code.begin(fine)

        def note(slot: Value, truth: Value) -> None:
            code.store(code.or_(code.load(slot, "i64", 8), code.cast("zext", truth, "i64")), slot, 8)

        ended = code.icmp("eq", status, Status.ENDED)
        waits = code.icmp("eq", status, Status.WAITING)
        note(live, code.not_(ended))
        note(yielded, code.icmp("eq", status, Status.YIELDED))
        first = code.and_(waits, code.icmp("ne", before, Status.WAITING))
        note(moved, code.or_(ended, first))
        code.br(done)
        code.begin(done)

    code.repeat(_get(code, "threads"), turn)

    def leave(truth: Value, status: Status) -> None:
        out, on = code.label(), code.label()
        code.cond_br(truth, out, on)
        code.begin(out)
        code.ret(code.const(status, "i32"))
        code.begin(on)

    leave(code.icmp("eq", code.load(live, "i64", 8), 0), Status.ENDED)
    stop = code.load(_get(code, "stop", PTR), "i32", 4)
    leave(code.icmp("ne", stop, 0), Status.STOPPED)
    some = code.icmp("ne", code.or_(code.load(moved, "i64", 8), _get(code, "progress")), 0)
    turns = code.load(yielded, "i64", 8)
    leave(code.and_(code.not_(some), code.icmp("eq", turns, 0)), Status.DEADLOCK)
    count = code.select(some, zero, code.add(code.load(rounds, "i64", 8), one))
    code.store(count, rounds, 8)
    leave(code.icmp("sgt", count, _ROUNDS), Status.YIELDED)
    code.br(again)
    return code.text()


def _launch() -> str:
    code = Code("launch", [PTR])
    one = code.const(1, "i64")
    check, look, take, taken, body, more, pause, stopped, failed, out = (code.label() for _ in range(10))
    code.br(check)
    code.begin(check)
    stop = code.load(_get(code, "stop", PTR), "i32", 4)
    code.cond_br(code.icmp("eq", stop, 0), look, stopped)
    code.begin(look)
    code.cond_br(code.icmp("slt", _get(code, "first"), _get(code, "last")), body, take)
    code.begin(take)
    chunk, groups = _get(code, "chunk"), _get(code, "groups")
    start = code.op(
        f"llvm.atomicrmw add {_get(code, 'next', PTR)}, {chunk} monotonic {{alignment = 8 : i64}} : {PTR}, i64", "i64"
    )
    code.cond_br(code.icmp("slt", start, groups), taken, out)
    code.begin(taken)
    _set(code, "first", start)
    _set(code, "last", code.intrinsic("smin", code.add(start, chunk), groups))
    code.br(body)
    code.begin(body)
    code.call("begin", code.arguments[0], _get(code, "first"))
    status = code.call("drive", code.arguments[0], result="i32")
    _set(code, "status", code.resize(status, 64, False))
    code.cond_br(code.icmp("eq", status, Status.ENDED), more, failed)
    code.begin(failed)
    code.ret()
    code.begin(more)
    for name in ("first", "ended"):
        _set(code, name, code.add(_get(code, name), one))
    code.cond_br(code.icmp("slt", _get(code, "first"), _get(code, "last")), check, pause)
    code.begin(pause)
    code.cond_br(code.icmp("eq", _get(code, "pause"), 0), check, out)
    code.begin(stopped)
    _set(code, "status", code.const(Status.STOPPED, "i64"))
    code.ret()
    code.begin(out)
    _set(code, "status", code.const(Status.ENDED, "i64"))
    code.ret()
    return code.text("")


def _resume() -> str:
    code = Code("resume", [PTR])
    status = code.call("drive", code.arguments[0], result="i32")
    _set(code, "status", code.resize(status, 64, False))
    code.ret()
    return code.text("")
