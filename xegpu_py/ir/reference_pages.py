"""The reference page of a dialect, made from its classes: `python -m xegpu_py.ir.reference_pages FOLDER`."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from xegpu_py.ir.codecs import AttributeCodec
from xegpu_py.ir.context import DIALECTS, dialects
from xegpu_py.ir.definition import DYNAMIC, Attr, Dialect, EnumCodec, Type
from xegpu_py.ir.diagnostics import spelled
from xegpu_py.ir.operation import SEGMENTS, STATIC, Operation, Syntax, ValueField

_LINE = 120
"""Characters of a line, above which a call is written as code formatters do."""

_EFFECTS = {
    "read": "reads memory",
    "write": "writes memory",
    "sync": "synchronizes, and must keep its place",
    "variables": "writes variables",
    "control": "says what runs next",
}


def page(dialect: type[Dialect]) -> str:
    """The reference page as Markdown."""
    operations = _distinct(dialect.operations.values())
    out = [
        f"<!-- Made by `make docs` from the dialect's classes; changes belong there. -->\n\n# '{dialect.name}' dialect",
        *_text(dialect),
        *_spellings(dialect),
        "## Operations",
        "\n".join(f"- [`{op.OPERATION_NAME}`](#{_anchor(_heading(op))})" for op in operations),
    ]
    for op in operations:
        out += _operation(op)
    for carrier in dialect.carried.values():
        out += [
            f"### `{carrier.mnemonic()}`",
            *_text(carrier),
            f"MLIR holds it as `{carrier.carrier}`, whose syntax it has.",
        ]
    for title, classes in (("Types", dialect.types), ("Attributes", dialect.attributes)):
        out += [f"## {title}"] if classes else []
        for cls in _distinct(classes.values()):
            out += _parametrized(cls)
    out += ["## Enums"] if dialect.enums else []
    for enum in dialect.enums.values():
        out += _enum(enum)
    return "\n\n".join(out) + "\n"


def entry(documented: Any) -> str:
    """The section on an op, a type, an attribute or an enum in the page of its dialect, as Markdown."""
    if isinstance(documented, EnumCodec):
        return spelled("\n\n".join(_enum(documented)))
    is_op = isinstance(documented, type) and issubclass(documented, Operation)
    return spelled("\n\n".join(_operation(documented) if is_op else _parametrized(documented)))


def _distinct(classes: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(classes))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))


def _text(documented: type) -> list[str]:
    """A docstring's summary in italics, and the rest of it."""
    text = inspect.cleandoc(documented.__doc__ or "")
    paragraph, _, remainder = text.partition("\n\n")
    summary, _, further_text = re.sub(r"\s*\n(?!- )", " ", paragraph).partition(". ")
    return [
        paragraph_text
        for paragraph_text in (f"_{summary.rstrip('.')}_", further_text, _fenced(remainder))
        if paragraph_text
    ]


def _fenced(text: str) -> str:
    return re.sub(
        r"(?m)(?:^    .*\n?(?:\n(?=    ))?)+", lambda m: f"```mlir\n{inspect.cleandoc(m[0])}\n```\n", text
    ).rstrip()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, [":---:", *["---"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _spellings(dialect: type[Dialect]) -> list[str]:
    rows = [(f"`{s}.`", f"`{dialect.name}.`") for s in dialect.spellings]
    rows += [(f"`{key}` (any case), on ops", f"`{name}`") for key, name in dialect.attribute_spellings.items()]
    rows += [
        (f"`#{dialect.name}.{key}`", f"`{attr.mnemonic()}{attr.write_body()}`")
        for key, attr in dialect.shorthands.items()
    ]
    rows += [(f"`#{dialect.name}.{name}`", f"`{enum.mnemonic}`") for name, enum in dialect.borrowed.items()]
    for cls in _distinct((*dialect.types.values(), *dialect.attributes.values())):
        rows += [(f"`{name}`", f"`{cls.name}`") for name in cls.also_named]
    rows += [
        (f"`{name}`, in the syntax of our ops", f"`{type_class}`") for name, type_class in dialect.type_names.items()
    ]
    return ["Further spellings that are read:", _table(("Read", "Means"), rows)] if rows else []


def _operation(op: type[Operation]) -> list[str]:
    spec, name, dialect = op.spec, op.OPERATION_NAME, op.dialect_class
    out = [f"### {_heading(op)}", *_text(op), "Syntax:", _syntax(op, [op.assembly_format])]
    names = [f"{dialect.name}.{n}" for n, cls in dialect.operations.items() if cls is op]
    if len(names) > 1:
        out.append(f"Also named {_listed(n for n in names if n != name)}.")
    if op.also_reads:
        out += ["Also read:", _syntax(op, op.also_reads)]
    if op.flags:
        out.append(f"Words that may stand alone in the attribute dictionary: {_listed(op.flags)}.")
    out += ["Builder:", f"```python\n{_builder(op)}\n```", f"Effects: {_effects(op)}."]
    attributes = [
        (f"`{a.name}`", _code(a.codec.summary), "required" if a.required else _default(a.codec, a.default))
        for a in spec.attributes.values()
        if a.name.removeprefix(STATIC) not in spec.index_lists
    ]
    if attributes:
        out += ["#### Attributes:", _table(("Attribute", "Value", "Default"), attributes)]
    for title, groups in (("Operand", spec.operands), ("Result", spec.results)):
        if groups:
            out += [f"#### {title}s:", _table((title, "Description"), [_value(g, spec.index_lists) for g in groups])]
    if spec.regions:
        rows = [(f"`{r.name}`", "optional region" if r.optional else "region") for r in spec.regions]
        out += ["#### Regions:", _table(("Region", "Description"), rows)]
    return [*out, *_generic(op)]


def _heading(op: type[Operation]) -> str:
    return f"`{op.OPERATION_NAME}` ({op.__name__})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _code(summary: str) -> str:
    return re.sub(r"[!#][\w.]+", r"`\g<0>`", summary)


def _syntax(op: type[Operation], formats: Iterable[str | Syntax]) -> str:
    lines = [f"operation ::= `{op.OPERATION_NAME}` {f}" if isinstance(f, str) else f for f in formats]
    return "```\n" + "\n".join(map(str, lines)) + "\n```"


def _builder(op: type[Operation]) -> str:
    parameters = inspect.signature(op).parameters.values()
    signature = inspect.Signature([p for p in parameters if p.name not in ("loc", "ip")])
    call = f"{op.OPERATION_NAME}{signature}"
    if len(call) <= _LINE:
        return call
    lines = "".join(f"    {p},\n" for p in signature.parameters.values())
    return f"{op.OPERATION_NAME}(\n{lines})"


def _effects(op: type[Operation]) -> str:
    if op.effects is None:
        return "unknown"
    return " and ".join(text for effect, text in _EFFECTS.items() if effect in op.effects) or "none"


def _value(group: ValueField, index_lists: Sequence[str]) -> tuple[str, str]:
    if group.name in index_lists:
        return f"`{group.name}`", "list of index values and constants"
    arity = {"single": "", "optional": "optional ", "variadic": "any number of "}[group.arity]
    return f"`{group.name}`", arity + _code(group.summary)


def _generic(op: type[Operation]) -> list[str]:
    """Attributes of the generic form that the op's own syntax does not show."""
    lines = []
    if op.spec.index_lists:
        static = _listed(STATIC + n for n in op.spec.index_lists)
        lines.append(f"{static}: the constants, with {DYNAMIC} where a value stands")
    lines += [
        f"`{SEGMENTS[segment]}`: the sizes of the groups" for segment in SEGMENTS if op.spec.needs_segments(segment)
    ]
    return [f"Generic form has, besides, {'; '.join(lines)}."] if lines else []


def _parametrized(cls: type[Type] | type[Attr]) -> list[str]:
    out = [f"### `{cls.mnemonic()}` ({cls.__name__})", *_text(cls)]
    codecs = cls.parameters()
    defaults = {f.name: f.default for f in dataclasses.fields(cls)}
    if codecs:
        rows = [(f"`{name}`", _code(codec.summary), _default(codec, defaults[name])) for name, codec in codecs.items()]
        out += ["#### Parameters:", _table(("Parameter", "Value", "Default"), rows)]
    return out


def _default(codec: AttributeCodec, value: Any) -> str:
    if value is dataclasses.MISSING:
        return ""
    return "none" if value in (None, "") else f"`{codec.write(value)}`"


def _enum(enum: EnumCodec) -> list[str]:
    enum_class: type[Enum] = enum.cases
    return [
        f"### `{enum.mnemonic}` ({enum_class.__name__})",
        *_text(enum_class),
        "Cases: " + ", ".join(f"`{enumerator.value}`" for enumerator in enum_class) + ".",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page of each dialect into a folder."""
    parser = argparse.ArgumentParser(prog="python -m xegpu_py.ir.reference_pages", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, dialect in zip(DIALECTS, dialects()):
        (folder / f"{name}.md").write_text(page(dialect), encoding="utf-8")


if __name__ == "__main__":
    main()
