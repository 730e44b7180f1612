"""Ops of TTIR with an operand or a result of another type: one diagnostic at the op, or a program that is lowered."""

import faulthandler
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from effort import examples, some

from xegpu_py.extensions.triton.lowering.tt_to_xetile import lowered_to_xetile
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import parse, walk

DUMPED = sorted((Path(__file__).parents[2] / "dialects/tt/dumped").glob("*.ttir"))
ELEMENTS = ("i1", "i8", "i32", "i64", "f16", "f32", "f8E5M2", "!tt.ptr<f32>", "!tt.ptr<i8>", "index")
RETURNS = {name: f"{name}.return" for name in ("tt.reduce", "tt.scan", "tt.map_elementwise")}

# What libtriton accepts and we refuse: results of atomics that are not the pointee's type, descriptors of another one,
# tensors that are splat, factors and scales that are not of their format, scalars beside tensors, other shapes.
STRICTER = (
    r"'result' must be of type|of the pointee's type|to repeat, and no tensor|must have elements|operand '._scale'"
    r"|requires operands and results of one shape|of one dimension|requires two operands of one type|entries in 'shape'"
    r"|indices for"
)


def _spelled(text: str) -> str:
    """Text of the bindings in our spelling of types."""
    blocks = re.compile(r"array<i64: ([\d, ]+)>, ")
    return blocks.sub(lambda m: m[1].replace(", ", "x") + "x", text.replace(', "global">', ">"))


def _seeds() -> dict[str, tuple[list[str], list[str], str]]:
    """An instance of each op of the dumped programs: the types of operands and results, and its generic text."""
    found = {}
    for path in DUMPED:
        module = parse(path)
        for op in (o.operation for o in walk(module.operation)):
            types = [_spelled(str(v.type)) for v in op.operands], [_spelled(str(v.type)) for v in op.results]
            if op.name.startswith("tt.") and op.name not in found and any(types):
                text = op.get_asm(print_generic_op_form=True, assume_verified=True)
                found[op.name] = (*types, _spelled(_in_our_form(op.name, text)))
    return found


def _in_our_form(name: str, text: str) -> str:
    """Ops with regions are read with their properties first, and with terminators in Triton's syntax."""
    if name not in RETURNS:
        return text
    text = _without_segments(text)
    text = re.sub(r'"vector.yield"\(([^)]*)\) : \(([^)]*)\) -> \(\)', rf"{RETURNS[name]} \1 : \2", text)
    text = text.replace("(%arg1, %0)", "(%arg1, %arg2)")
    return re.sub(r"\(\{(.*)\}\) (\{[^{}]*\}) :", r"<\2> ({\1}) :", text, flags=re.DOTALL)


def _without_segments(text: str) -> str:
    """Text without the sizes of groups of mixed types, which only we need."""
    return re.sub(r"(?:operand|result)SegmentSizes = array<i32: (?:\d, ){31}\d>(?:, )?", "", text).replace(", }", "}")


SEEDS = _seeds()


def _parts(text: str) -> tuple[list[int] | None, str]:
    m = re.fullmatch(r"(?:tensor|!tt\.tensordesc)<((?:\d+x)*)(.*)>", text)
    return ([int(n) for n in m[1].split("x")[:-1]], m[2]) if m else (None, text)


def _others(text: str) -> list[str]:
    """Types that differ in the element or in the shape."""
    shape, element = _parts(text)

    def made(shape, element):
        name = "!tt.tensordesc" if text.startswith("!tt.tensordesc") else "tensor"
        return element if shape is None else f"{name}<{''.join(f'{n}x' for n in shape)}{element}>"

    if shape is None:
        shapes = [[16], [1]]
    else:
        shapes = [[2, *shape], [*shape, 1]]
        shapes += [[*shape[:i], *size, *shape[i + 1 :]] for i, n in enumerate(shape) for size in ([2 * n], [1], [])]
    if text.startswith("!tt.tensordesc"):
        return [made(s, element) for s in shapes if s] + [made(shape, e) for e in ("i64", "f16")]
    return [
        *(made(s, element) for s in shapes),
        *(made(shape, e) for e in ELEMENTS),
        *([] if shape is None else [element]),
    ]


def _program(name: str, operands: list[str], results: list[str], text: str) -> str:
    """A kernel with the op, whose operands are constants."""
    arguments, lines, names = {}, [], []
    for i, kind in enumerate(operands):
        shape, element = _parts(kind)
        names.append(f"%o{i}")
        if kind.startswith("!tt.tensordesc"):
            base = arguments.setdefault(f"!tt.ptr<{element}>", f"%p{len(arguments)}")
            sizes, strides = [", ".join([f"%{kind}{i}"] * len(shape)) for kind in "ns"]
            lines += [f"%n{i} = arith.constant 64 : i32", f"%s{i} = arith.constant 1 : i64"]
            block = "x".join(map(str, shape)) + f"x{element}"
            lines.append(f"%o{i} = tt.make_tensor_descriptor {base}, [{sizes}], [{strides}] : <{element}>, <{block}>")
        elif element.startswith("!tt.ptr"):
            base = arguments.setdefault(element, f"%p{len(arguments)}")
            names[-1] = base if shape is None else names[-1]
            lines += [] if shape is None else [f"%o{i} = tt.splat {base} : {element} -> {kind}"]
        else:
            number = "true" if element == "i1" else "1" if element[0] == "i" else "1.0"
            typed = "" if kind == "i1" else f" : {kind}"
            lines.append(f"%o{i} = arith.constant {number if shape is None else f'dense<{number}>'}{typed}")
    head = re.sub(
        r"^(%[\w:]+ = )?\"[\w.]+\"\([^)]*\)", f'"{name}"({", ".join(names)})', text.rsplit(" : (", 1)[0], count=1
    )
    left = f"%r:{len(results)} = " if results else ""
    lines.append(f"{left}{head} : ({', '.join(operands)}) -> ({', '.join(results)})")
    parameters = ", ".join(f"{name}: {kind}" for kind, name in arguments.items())
    return f"tt.func public @k({parameters}) {{\n" + "\n".join(lines) + "\ntt.return\n}\n"


def _mutants(name: str) -> Iterator[str]:
    """Programs in which one operand or result, or all that have one type, have another type."""
    operands, results, text = SEEDS[name]
    types = operands + results
    for kind in dict.fromkeys(types):
        places = [i for i, t in enumerate(types) if t == kind]
        for chosen in [*([i] for i in places), *([places] if len(places) > 1 else [])]:
            for other in _others(kind):
                mutant = [other if i in chosen else t for i, t in enumerate(types)]
                yield _program(name, mutant[: len(operands)], mutant[len(operands) :], text)


@pytest.mark.parametrize("name", SEEDS)
def test_another_type_is_one_diagnostic_at_the_op_or_is_lowered(name: str):
    parse(_program(name, *SEEDS[name]))
    refused = 0
    for program in some(_mutants(name), 1 / 6):
        try:
            lowered_to_xetile(parse(program))
        except DiagnosticError as e:
            refused += 1
            (diagnostic,) = e.diagnostics
            line = program.split("\n")[diagnostic.position.line - 1]
            assert f'"{name}"' in line or "return" in line, f"{program}\n{e}"
            assert "vector.yield" not in str(e)
    assert refused or name in ("tt.print", "tt.ptr_to_int")


def _verdicts(programs: list[str], folder: Path) -> list[bool | None]:
    """Whether libtriton accepts programs, in a process that may end at an assertion: None for one that ended it."""
    from generators import triton_kernels
    from triton._C import libtriton

    found: list[bool | None] = []
    while len(found) < len(programs):
        out, path = folder / "verdicts", folder / "program.ttir"
        if os.fork() == 0:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stderr__.fileno())
            with out.open("wb", buffering=0) as verdicts:
                for program in programs[len(found) :]:
                    path.write_text(_as_theirs(program))
                    try:
                        libtriton.ir.parse_mlir_module(str(path), triton_kernels.context())
                        verdicts.write(b"1")
                    except RuntimeError:
                        verdicts.write(b"0")
            os._exit(0)
        os.wait()
        found += [byte == ord("1") for byte in out.read_bytes()]
        found += [None] * (len(found) < len(programs))
    return found


def _as_theirs(program: str) -> str:
    program = _without_segments(program)
    return re.sub(r'policy<"(\w+)", "(\w+)">', r"policy<cache_modifier = \1, eviction_policy = \2>", program)


def test_libtriton_refuses_no_type_that_we_accept(tmp_path: Path):
    pytest.importorskip("triton")
    programs = [_program(name, *seed) for name, seed in SEEDS.items()]
    mutants = [p for name in SEEDS for p in _mutants(name) if "index" not in p]
    programs += Random(44).sample(mutants, examples(1000))
    wrong = []
    for i, (program, theirs) in enumerate(zip(programs, _verdicts(programs, tmp_path))):
        try:
            parse(program)
            ours = ""
        except DiagnosticError as e:
            ours = str(e)
        seed_refused = i < len(SEEDS) and not theirs
        if seed_refused or (not theirs and not ours) or (theirs and ours and not re.search(STRICTER, ours)):
            wrong.append(f"{program}libtriton: {theirs}, here: {ours or 'accepted'}")
    assert not wrong, "\n".join(wrong)
