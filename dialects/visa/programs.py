"""Kernels of the dialect as decoded programs, both ways, and the rules that whole kernels have.

The ops are imported where they are made or decoded, since it takes as long to define them as to lower a small kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.deferred import deferred, pattern
from xegpu_py.ir.assembly_format import encode
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.codecs import StringCodec
from xegpu_py.ir.context import Context, current
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, op_error, position_of
from xegpu_py.ir.module import Module, kernels, walk
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.target import Target, target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, MAX_ALIASES, Predicate, Region, Variable
from xegpu_py.visa.program import DEFAULT_VERSION, LABEL, VERSION_OF, Input, Instruction, Program
from xegpu_py.visa.verify import Issue
from xegpu_py.visa.verify import verify as program_issues

assembly: Any = deferred("xegpu_py.visa.assembly")

KERNEL = "gpu.func"

RETURN = "gpu.return"

ATTRIBUTES = "visa.attributes"

VERSION = "visa.version"

FUNCTIONS = "visa.functions"

TARGET = "visa.target"

LIMITS = "visa.limits"

REGISTERS = "visa.registers"

PRESSURE = "visa.pressure"

_ATTRIBUTE_NAME = pattern(r"[A-Za-z_]\w*")

_QUOTED = pattern(r'[^"\\\n]*')
"""Text that is legal between quotes in assembly."""


def kernel_named(module: ir.Operation, name: str) -> ir.Operation:
    """The kernel of a name, which the module has."""
    return next(func for func in kernels(module) if name_of(func) == name)


def name_of(func: ir.Operation) -> str:
    """A kernel's name."""
    return str(func.attributes["sym_name"].value)


def target_of(func: ir.Operation) -> Target:
    """The target of a kernel: what `visa.target` of it, or of an op around it, names.

    Raises:
        DiagnosticError: if that is not a target.
    """
    op: Any = func
    while op is not None:
        op = op.operation
        if TARGET in op.attributes:
            named = op.attributes[TARGET]
            try:
                return target(named.value if isinstance(named, ir.StringAttr) else str(named))
            except ValueError as e:
                raise DiagnosticError([op_error(op, f"{TARGET}: {e}")]) from None
        op = op.parent
    return target()


class KernelBody(Struct, frozen=True):
    """The body of a kernel whose program is known."""

    program: Program

    def clear(self, func: ir.Operation) -> None:
        """Erase the ops of a kernel except its terminator."""
        block = func.regions[0].blocks[0]
        for op in reversed(list(block.operations)):
            op.operation.erase()
        with ir.InsertionPoint(block):
            ir.Operation.create(RETURN, loc=func.location)

    def build(self, func: ir.Operation) -> None:
        """Create the program's ops. The signature is kept, so that launches of the kernel remain valid."""
        replace_body(func, self.program)

    def verify(self, func: ir.Operation) -> list[Diagnostic]:
        """The rules that the program breaks on the kernel's target."""
        return [_diagnostic(issue) for issue in program_issues(self.program, target_of(func))]


def is_lowered(func: ir.Operation, bodies: PendingFunctions | None = None) -> bool:
    """Whether a kernel contains instructions, and not ops that must still be lowered."""
    if bodies and isinstance(bodies.get(func), KernelBody):
        return True
    blocks = func.regions[0].blocks
    return any(op.operation.name.startswith("visa.") for op in blocks[0].operations)


def registers_of(func: ir.Operation) -> int | None:
    """The number of registers of a thread, if they have been allocated."""
    return ir.IntegerAttr(func.attributes[REGISTERS]).value if REGISTERS in func.attributes else None


def set_target(module: ir.Operation, name: str) -> None:
    """Set the target of every kernel in a module, whatever it was before."""
    for op in walk(module):
        if TARGET in op.attributes:
            del op.attributes[TARGET]
    module.attributes[TARGET] = ir.StringAttr.get(name, module.context)


def program_of(func: ir.Operation, bodies: PendingFunctions | None = None) -> Program:
    """The program of a kernel: the known one, or else the one decoded from its ops. It may be illegal on every target.

    Raises:
        DiagnosticError: where the kernel is not a list of instructions.
    """
    body = bodies.get(func) if bodies else None
    if isinstance(body, KernelBody):
        return body.program
    program = _Decoder(func.operation).program()
    if bodies:
        bodies.note(func, KernelBody(program))
    return program


class _Decoder:
    """Decodes one kernel."""

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.faults: list[Diagnostic] = []
        self.variables: dict[ir.Value, Variable | Predicate] = {}
        self.inputs: list[Input] = []
        self.instructions: list[Instruction] = []
        self.declared: dict[str, Position] = {}
        self.known: dict[tuple[str, str, ir.Attribute], Any] = {}

    def program(self) -> Program:
        name = name_of(self.func)
        if not _QUOTED.fullmatch(name):
            self._fault(
                self.func,
                "has a name that is not valid in assembly",
                "a name cannot contain quotes, backslashes or newlines",
            )
        attributes = self._attributes()
        for op in self._body():
            view = op.opview
            try:
                self._op(view)
            except KeyError:
                self._fault(op, "operand is not declared by an op of the visa dialect in this kernel")
            except ValueError as e:
                self._fault(op, str(e))
        if self.faults:
            raise DiagnosticError(self.faults)
        if any(isinstance(v, Variable) and v.kind == "A" for v in self.variables.values()):
            self.instructions = list(assembly.with_bases(self.instructions))
        builtins = BUILTINS.values()
        declared = [v for v in self.variables.values() if v not in builtins]
        return Program(
            name,
            tuple(v for v in declared if isinstance(v, Variable)),
            tuple(v for v in declared if isinstance(v, Predicate)),
            tuple(self.inputs),
            attributes,
            tuple(self.instructions),
            position_of(self.func.location),
            self.declared,
            self._version(),
            self._functions(),
        )

    def _fault(self, op: ir.Operation, message: str, *notes: str) -> None:
        self.faults.append(op_error(op, message, *notes))

    def _version(self) -> str:
        version = self.func.attributes.get(VERSION)
        if version is None:
            return DEFAULT_VERSION
        if not isinstance(version, ir.StringAttr) or not VERSION_OF.fullmatch(version.value):
            raise DiagnosticError([op_error(self.func, f'{VERSION} must be a version of assembly, such as "4.2"')])
        return str(version.value)

    def _functions(self) -> tuple[str, ...]:
        listed = self.func.attributes.get(FUNCTIONS)
        if listed is None:
            return ()
        labels = {inst["label"] for inst in self.instructions if inst.name == LABEL}
        names = [str(name.value) if isinstance(name, ir.StringAttr) else str(name) for name in _elements(listed)]
        unknown = [name for name in names if name not in labels]
        if unknown or not names:
            problem = f"'{unknown[0]}' is no label of the kernel" if unknown else "it must be an array of labels"
            raise DiagnosticError([op_error(self.func, f"{FUNCTIONS}: {problem}")])
        return tuple(names)

    def _attributes(self) -> dict[str, int | str]:
        attributes: dict[str, int | str] = {}
        if ATTRIBUTES not in self.func.attributes:
            return attributes
        dictionary = self.func.attributes[ATTRIBUTES]
        if not isinstance(dictionary, ir.DictAttr):
            self._fault(self.func, f"{ATTRIBUTES} must be a dictionary")
            return attributes
        for entry in dictionary:
            name, value = entry.name, entry.attr
            plain = value.value if isinstance(value, (ir.StringAttr, ir.IntegerAttr)) else None
            if not _ATTRIBUTE_NAME.fullmatch(name):
                self._fault(self.func, f"{ATTRIBUTES}: '{name}' is not a valid attribute name")
            elif isinstance(plain, bool) or plain is None or not _QUOTED.fullmatch(str(plain)):
                self._fault(self.func, f"{ATTRIBUTES}: '{name}' must be an integer or a string of assembly")
            else:
                attributes[name] = plain
        return attributes

    def _body(self) -> Iterator[ir.Operation]:
        blocks = [*self.func.regions[0]]
        if len(blocks) != 1:
            self._fault(self.func, f"of visa instructions must have one block, but got {len(blocks)}")
            return
        # Arguments are the signature that a kernel had before it was lowered; its inputs are variables.
        used = [i for i, argument in enumerate(blocks[0].arguments) if next(iter(argument.uses), None) is not None]
        if used:
            self._fault(
                self.func,
                f"of visa instructions cannot use its argument {used[0]}",
                "declare a variable with 'visa.input' for each argument that instructions read",
            )
            return
        for op in blocks[0].operations:
            yield op.operation

    def _op(self, view: ir.OpView) -> None:
        from xegpu_py.dialects.visa.ops import BuiltinOp, DeclAddressOp, DeclOp, DeclPredOp, InputOp, InstructionOp

        where = position_of(view.operation.location)
        if isinstance(view, InstructionOp):
            inst = view.instruction(self.variables.__getitem__, self.known)
            self.instructions.append(
                Instruction(inst.name, inst.values, inst.exec_size, inst.mask, inst.guard, inst.saturate, where)
            )
        elif isinstance(view, DeclOp):
            alias = None if view.alias is None else (self._variable(view.alias), view.offset)
            if alias and alias[0].aliases == MAX_ALIASES:
                self._fault(view.operation, f"exceeds the maximum length of a chain of aliases, {MAX_ALIASES}")
                alias = None
            self._declare(view.result, Variable(view.var_name, view.element, view.count, view.align, alias), where)
        elif isinstance(view, DeclPredOp):
            self._declare(view.result, Predicate(view.var_name, view.count), where)
        elif isinstance(view, DeclAddressOp):
            self._declare(view.result, Variable(view.var_name, "ud", view.count, "dword", kind="A"), where)
        elif isinstance(view, BuiltinOp):
            self.variables[view.result] = BUILTINS[f"%{view.which}"]
        elif isinstance(view, InputOp):
            self.inputs.append(Input(self._variable(view.var), view.offset, view.size, view.kind, where))
        elif view.operation.name != RETURN:
            self._fault(view.operation, "is not allowed in a kernel of visa ops", "only visa ops and 'gpu.return' are")

    def _variable(self, value: ir.Value) -> Variable:
        variable = self.variables[value]
        assert isinstance(variable, Variable)
        return variable

    def _declare(self, result: ir.Value, variable: Variable | Predicate, where: Position) -> None:
        self.variables[result] = variable
        if variable.name in self.declared:
            self._fault(result.owner, f"redefinition of variable '{variable.name}'")
        self.declared[variable.name] = where


def verify(ops: Iterable[Operation], bodies: PendingFunctions) -> list[Diagnostic]:
    """The rules that ops of the dialect break together: those of the kernels in which they stand."""
    diagnostics: list[Diagnostic] = []
    parents: dict[Any, Operation] = {}
    for op in ops:
        parents.setdefault(op.operation.parent.operation, op)
    for parent, first in parents.items():
        if parent.name != KERNEL or not is_kernel(parent):
            diagnostics.append(
                op_error(first.operation, "must be in the body of a gpu.func with the attribute 'kernel'")
            )
            continue
        try:
            gpu, program = target_of(parent), program_of(parent, bodies)
        except DiagnosticError as e:
            diagnostics += e.diagnostics
        else:
            diagnostics += [_diagnostic(issue) for issue in program_issues(program, gpu)]
    return diagnostics


def _diagnostic(issue: Issue) -> Diagnostic:
    inst = issue.instruction
    subject = f"'visa.{INSTRUCTIONS[inst.name].op_name}' op " if inst else ""
    notes = tuple(Diagnostic("note", note, issue.where) for note in issue.notes)
    return Diagnostic("error", subject + issue.message, issue.where, notes)


def module_of(programs: Sequence[Program], target_name: str | None = None, *, context: Context | None = None) -> Module:
    """A module with programs as kernels. It is not verified.

    Args:
        programs: the programs; their names differ.
        target_name: what `visa.target` names; None for no such attribute.
        context: its context; by default the current context or a new one.
    """
    attributes = f" attributes {{{TARGET} = {_string(target_name)}}}" if target_name else ""
    lines = [f"gpu.module @kernels{attributes} {{"]
    for program in programs:
        lines += _kernel(program)
    context = context or current()
    context.load(["visa"])
    with context:
        return Module(ir.Module.parse("\n".join([*lines, "} loc(unknown)"])))


def replace_body(func: ir.Operation, program: Program) -> None:
    """Replace a kernel's ops by a program. The signature is kept, so that launches of the kernel remain valid."""
    module = module_of([program], context=func.context)
    source = kernels(module.operation)[0]
    block = func.regions[0].blocks[0]
    for op in reversed(list(block.operations)):
        op.operation.erase()
    point = ir.InsertionPoint(block)
    for op in list(source.regions[0].blocks[0].operations):
        op.operation.detach_from_parent()
        point.insert(op.operation)
    for name in (ATTRIBUTES, VERSION, FUNCTIONS):
        if name in source.attributes:
            func.attributes[name] = source.attributes[name]


def _elements(attribute: ir.Attribute) -> list[ir.Attribute]:
    return list(attribute) if isinstance(attribute, ir.ArrayAttr) else []


_string = StringCodec().encode


def _location(where: Position) -> str:
    return f" loc({_string(where.file)}:{where.line}:{where.column})" if where.line else " loc(unknown)"


def _kernel(program: Program) -> Iterator[str]:
    from xegpu_py.dialects.visa.ops import OPS, VAR, AddressName, InputOp, parsed_of

    values = (f"{k} = {_string(v) if isinstance(v, str) else f'{v} : i64'}" for k, v in program.attributes.items())
    entries = [f"{ATTRIBUTES} = {{{', '.join(values)}}}"] if program.attributes else []
    if program.version != DEFAULT_VERSION:
        entries.append(f"{VERSION} = {_string(program.version)}")
    if program.functions:
        entries.append(f"{FUNCTIONS} = [{', '.join(map(_string, program.functions))}]")
    attributes = f" attributes {{{', '.join(entries)}}}" if entries else ""
    yield f"gpu.func @{_string(program.name)}() kernel{attributes} {{"
    names: dict[Any, str] = {}
    declared: list[Variable | Predicate] = [*_builtins(program), *program.variables, *program.predicates]
    for var in declared:
        op, parsed = _declaration(var, names)
        name = f"%{len(names)}"
        names[var] = AddressName(name) if isinstance(var, Variable) and var.kind == "A" else name
        where = program.declared.get(var.name, program.where)
        yield f"{names[var]} = {''.join(encode(op, parsed))}{_location(where)}"
    for item in program.inputs:
        fields = {"offset": item.offset, "size": item.size} | ({"kind": item.kind} if item.kind else {})
        parsed = ParsedOp({"var": [names[item.var]]}, {"var": [VAR]}, fields)
        yield "".join(encode(InputOp, parsed)) + _location(item.where)
    for inst in program.instructions:
        parsed = parsed_of(INSTRUCTIONS[inst.name], inst.renamed(names))
        yield "".join(encode(OPS[inst.name], parsed)) + _location(inst.where)
    yield f"{RETURN}{_location(program.where)}\n}}{_location(program.where)}"


def _builtins(program: Program) -> list[Variable]:
    values = [value for inst in program.instructions for value in inst.values.values()]
    named = {getattr(value, "var", None) for value in values}
    named.update(value.base.var for value in values if isinstance(getattr(value, "base", None), Region))
    named.update(var.alias[0] for var in program.variables if var.alias)
    return [v for v in BUILTINS.values() if v in named]


def _declaration(var: Variable | Predicate, names: dict[Any, str]) -> tuple[type[Operation], ParsedOp]:
    from xegpu_py.dialects.visa.ops import ADDRESS, PRED, VAR, BuiltinOp, DeclAddressOp, DeclOp, DeclPredOp

    if isinstance(var, Predicate):
        return DeclPredOp, ParsedOp({}, {"result": [PRED]}, {"var_name": var.name, "count": var.count})
    if var in BUILTINS.values():
        return BuiltinOp, ParsedOp({}, {"result": [VAR]}, {"which": var.name.removeprefix("%")})
    if var.kind == "A":
        return DeclAddressOp, ParsedOp({}, {"result": [ADDRESS]}, {"var_name": var.name, "count": var.count})
    fields: dict[str, Any] = {"var_name": var.name, "element": var.type, "count": var.count}
    if var.align != "byte":
        fields["align"] = var.align
    if var.alias and var.alias[1]:
        fields["offset"] = var.alias[1]
    base = [names[var.alias[0]]] if var.alias else []
    return DeclOp, ParsedOp({"alias": base}, {"alias": [VAR] * len(base), "result": [VAR]}, fields)
