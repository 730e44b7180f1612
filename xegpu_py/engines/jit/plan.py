"""The facts about a program that running its native code needs, cached on disk with the code."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from xegpu_py.engines.access import Layout
from xegpu_py.engines.jit.cache import Cache, digest, package_state
from xegpu_py.engines.jit.control import block_starts
from xegpu_py.engines.jit.emitter import is_independent
from xegpu_py.engines.jit.frame import TABLES
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.kernel import functions_of_program, given_bytes, matrices_of
from xegpu_py.engines.jit.llvm import Loaded
from xegpu_py.engines.jit.native import QUICK_LEVEL, kept_code, key_of, loaded, thread_code, versions
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.flow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program


class Plan(Struct, frozen=True):
    """The facts about a program that running its native code needs.

    Attributes:
        divergent: whether each lane has its program counter.
        starts: the instructions that begin basic blocks.
        length: the number of instructions.
        tables: names of the tables that the code looks into.
        code: the key of the code in caches.
        independent: see `is_independent`.
        given: bytes of the register file, from the first on, that threads may read before they write them.
        panel_bytes, step_bytes: the size of panels, and of those of a step of a loop; see `Panels`.
    """

    divergent: bool
    starts: Sequence[int]
    length: int
    tables: Sequence[str]
    code: str
    independent: bool
    given: int
    panel_bytes: int
    step_bytes: int


def prepared(
    program: Program,
    layout: Layout,
    model: Model,
    host: Host,
    *,
    divergent: bool | None = None,
    keep: bool = False,
    alone: bool = True,
    cache: Cache | None = None,
    quick: bool = False,
) -> tuple[Plan, Loaded, Callable[[], Loaded] | None]:
    """A program's plan and its code: of a program that was read from disk those that are there; see `engine.Jit`.

    Returns:
        The plan, the code, and for code that was compiled quickly a function that compiles it again, optimized.
    """
    own = program.digest if cache else None
    key = ""
    if own is not None and cache is not None:
        machine = host.machine
        checks = (layout.watch, layout.races, layout.bounds)
        what = (layout.target.name, layout.allocation.registers, *checks, model, divergent, keep)
        key = digest("plan", package_state(), versions(), own, repr(what), repr(machine), repr(sorted(host.features)))
        plan = _read(cache.get(key))
        code = thread_code(plan.code, None, host, cache, alone=alone) if plan else None
        if plan and code:
            return plan, code, None
    parts = flow_of(program).divergent if divergent is None else divergent
    functions = functions_of_program(program, layout, model, host, parts, keep)
    tables = sorted({i.name for i in program.instructions} & set(TABLES))
    matrices = matrices_of(program, layout, model, host, parts, keep)
    plan = Plan(
        parts,
        block_starts(program),
        len(program.instructions),
        tables,
        key_of(functions, host, versions() if cache else ""),
        is_independent(program),
        given_bytes(program, layout, keep),
        matrices.panel_bytes if matrices else 0,
        matrices.step_bytes if matrices else 0,
    )

    def optimized() -> Loaded:
        found = thread_code(plan.code, functions, host, cache, alone=alone)
        assert found
        return found

    if quick and cache is None and not host.is_arm and _is_brief(program) and (alone or kept_code(plan.code) is None):
        return plan, loaded(functions, ("thread",), host, level=QUICK_LEVEL), optimized
    code = optimized()
    if key and cache is not None:
        cache.put(key, json.dumps(structs.asdict(plan)).encode())
    return plan, code, None


def _is_brief(program: Program) -> bool:
    """Whether threads execute each instruction at most once, and no product of matrices, which needs optimized code."""
    specs = [(at, inst, INSTRUCTIONS[inst.name]) for at, inst in enumerate(program.instructions)]
    return not any(
        spec.category == "dpas" or (spec.jumps and program.labels[inst["label"]] <= at) for at, inst, spec in specs
    )


def _read(kept: bytes | None) -> Plan | None:
    try:
        return Plan(**json.loads(kept)) if kept else None
    except (ValueError, TypeError):
        return None
