"""The IRDL definition of a dialect: as much of its constraints as IRDL can hold."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from mlir import ir

from xegpu_py.ir.bindings import load_dialects
from xegpu_py.ir.definition import Attr, Dialect, EnumCodec, Type
from xegpu_py.ir.fields import ValueField
from xegpu_py.ir.operation import Operation


class _Body:
    """The constraint operations of one definition."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._bases: set[str] = set()

    def constraint(self, text: str) -> str:
        # Each use gets a value of its own: uses of one value would have to be equal.
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if text.startswith("irdl.base "):
            self._bases.add(name)
        return name

    def any_of(self, names: list[str]) -> str:
        if len(names) == 1:
            return names[0]
        # MLIR 22 stops the process on an any_of that has an irdl.base among its members.
        if not self._bases.isdisjoint(names):
            return self.constraint("irdl.any")
        return self.constraint(f"irdl.any_of({', '.join(names)})")


def dump(dialect: type[Dialect]) -> str:
    """The dialect's definition as IRDL text, which stock `mlir-opt --irdl-file` loads too."""
    out = [f"irdl.dialect @{dialect.name} {{"]
    for enum in dialect.enums.values():
        out += _definition("attribute", enum.name, _enum(enum))
    for attr in dict.fromkeys(dialect.attributes.values()):
        out += _definition("attribute", attr.name, _parameters(attr))
    for cls in dict.fromkeys(dialect.types.values()):
        out += _definition("type", cls.name, _parameters(cls))
    for op in dict.fromkeys(dialect.operations.values()):
        out += _definition("operation", op.OPERATION_NAME.partition(".")[2], _operation(op))
    return "\n".join([*out, "}", ""])


_DEFINITIONS: dict[type[Dialect], str | bytes] = {}
"""What a context reads to define a dialect: after the second time bytecode, which is read in half the time."""


def load(dialects: Sequence[type[Dialect]]) -> None:
    """Define the dialects in the current context."""
    for dialect in dialects:
        known = _DEFINITIONS.get(dialect)
        definition = dump(dialect) if known is None else known
        module = ir.Module.parse(definition)
        load_dialects(module)
        if isinstance(known, str):
            module.operation.write_bytecode(written := BytesIO())
            definition = written.getvalue()
        _DEFINITIONS[dialect] = definition


def _definition(what: str, name: str, body: list[str]) -> list[str]:
    return [f"  irdl.{what} @{name} {{", *(f"    {line}" for line in body), "  }"]


def _enum(enum: EnumCodec) -> list[str]:
    body = _Body()
    case = body.any_of([body.constraint(f'irdl.is "{c.value}"') for c in enum.cases])
    return [*body.lines, f"irdl.parameters(value: {case})"]


def _parameters(cls: type[Type] | type[Attr]) -> list[str]:
    body = _Body()
    listed = [f"{name}: {codec.irdl(body)}" for name, codec in cls.parameters().items()]
    return [*body.lines, f"irdl.parameters({', '.join(listed)})"] if listed else []


def _operation(op: type[Operation]) -> list[str]:
    body, spec = _Body(), op.spec
    operands = [_value(body, f) for f in spec.operands]
    results = [_value(body, f) for f in spec.results]
    # An attribute that IRDL knows must be there, so optional ones are left to our own verifier.
    required = [f'"{a.name}" = {a.codec.irdl(body)}' for a in spec.attributes.values() if a.required]
    regions = [f"{r.name}: {body.constraint('irdl.region')}" for r in spec.regions]
    for keyword, listed in (("operands", operands), ("results", results)):
        if listed:
            body.lines.append(f"irdl.{keyword}({', '.join(listed)})")
    if required:
        body.lines.append(f"irdl.attributes {{{', '.join(required)}}}")
    if regions:
        body.lines.append(f"irdl.regions({', '.join(regions)})")
    return body.lines


def _value(body: _Body, field: ValueField) -> str:
    constraint = body.any_of([c.irdl(body) for c in field.constraints])
    arity = "" if field.arity == "single" else field.arity + " "
    return f"{field.name}: {arity}{constraint}"
