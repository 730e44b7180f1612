"""Linking: the texts of a kernel and of the functions that it calls become one program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.visa.operands import Destination, Immediate, Predicate, Variable
from xegpu_py.visa.program import LABEL, Instruction, Program


def link(kernel: Program, functions: Sequence[Program]) -> Program:
    """The kernel with the functions that it calls, directly or through others, or whose addresses it takes.

    A function begins at a label with its name. Its variables and its other labels get names that begin with it.

    Raises:
        DiagnosticError: if a function that is called is not among `functions`.
    """
    by_name = {function.name: function for function in functions}
    callee_names = _needed(kernel, by_name)
    if not callee_names:
        return kernel
    programs = [kernel, *(_renamed(by_name[name]) for name in callee_names)]
    entries = list(callee_names)
    merged = structs.replace(
        kernel,
        variables=tuple(var for program in programs for var in program.variables),
        predicates=tuple(p for program in programs for p in program.predicates),
        resources=tuple(r for program in programs for r in program.resources),
        declared={name: where for program in programs for name, where in program.declared.items()},
        instructions=tuple(inst for program in programs for inst in program.instructions),
        functions=(*kernel.functions, *entries, *(name for program in programs[1:] for name in program.functions[1:])),
        callees=(),
    )
    return merged.with_instructions([_with_address(inst, merged, entries) for inst in merged.instructions])


def linked(programs: Sequence[Program]) -> list[Program]:
    """The kernels of a text, each with the functions of the text that it calls.

    Raises:
        DiagnosticError: if there are functions and no kernel, or a kernel calls a function that the text does not have.
    """
    functions = [program for program in programs if program.is_function]
    kernels = [program for program in programs if not program.is_function]
    if functions and not kernels:
        message = f"'{functions[0].name}' is a function, and the text has no kernel that calls it"
        raise DiagnosticError([Diagnostic("error", message, functions[0].where)])
    return [link(kernel, functions) for kernel in kernels] if functions else kernels


def _needed(kernel: Program, by_name: Mapping[str, Program]) -> list[str]:
    """The names of the functions that a kernel needs, in the order of their first mention."""
    names: list[str] = []
    todo = [kernel]
    while todo:
        function = todo.pop(0)
        for inst in function.instructions:
            name = inst.values.get("callee") or inst.values.get("symbol")
            if name is None or name in names:
                continue
            if name in by_name:
                names.append(name)
                todo.append(by_name[name])
            elif "callee" in inst.values:
                message = f"'{inst.name}' calls '{name}', whose text is not given"
                raise DiagnosticError([Diagnostic("error", message, inst.where)])
    return names


def _renamed(function: Program) -> Program:
    """A function with names of its own; the label at which it begins is its name."""
    variables: dict[Any, Any] = {}
    for var in function.variables:
        alias = None
        if var.alias:
            base, offset = var.alias
            alias = (variables.get(base, base), offset)
        variables[var] = Variable(_name(function, var.name), var.type, var.count, var.align, alias, var.kind)
    for predicate in function.predicates:
        variables[predicate] = Predicate(_name(function, predicate.name), predicate.count)
    entry = next((inst["label"] for inst in function.instructions if inst.name == LABEL), "")
    labels = {name: _name(function, name) for name in function.labels} | {entry: function.name}
    return structs.replace(
        function,
        variables=tuple(variables[var] for var in function.variables),
        predicates=tuple(variables[p] for p in function.predicates),
        declared={_name(function, name): where for name, where in function.declared.items()},
        functions=tuple(labels.get(name, name) for name in function.functions),
        instructions=tuple(_relabelled(function.instructions, variables, labels)),
    )


def _name(function: Program, name: str) -> str:
    return f"{function.name}_{name}"


def _relabelled(
    instructions: Iterable[Instruction], variables: Mapping[Any, Any], labels: Mapping[str, str]
) -> Iterable[Instruction]:
    for inst in instructions:
        renamed = inst.renamed(variables)
        if "label" in inst.values:
            renamed = renamed.replaced(values={**renamed.values, "label": labels[inst["label"]]})
        yield renamed


def _with_address(inst: Instruction, program: Program, entries: Sequence[str]) -> Instruction:
    """An instruction; instead of `faddr` of a function a `mov` of its address."""
    if inst.name != "faddr" or inst["symbol"] not in entries:
        return inst
    dst: Destination = inst["dst"]
    address = Immediate(program.function_address(inst["symbol"]), dst.var.type)
    return structs.replace(inst, name="mov", values={"dst": dst, "src0": address}, exec_size=1, mask="M1_NM", known={})
