"""The types of a dialect's builders for type checkers and editors: `python -m xegpu_py.ir.type_stubs`.

The `__init__.py` of a dialect's package gets an `__init__.pyi` beside it, with a function for each op: type checkers
cannot see those that `Dialect.function` makes.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType

from xegpu_py.ir.codecs import AttributeCodec, BoolCodec, IntArrayCodec, IntCodec, StringCodec, WordCodec
from xegpu_py.ir.context import dialects
from xegpu_py.ir.definition import AttrCodec, Dialect, EnumCodec
from xegpu_py.ir.operation import Operation, ValueField

_LINE = 120

_HEAD = """\
# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
"""

_ALIASES = """
_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str
"""


def stub(dialect: type[Dialect]) -> str:
    """The text of the `__init__.pyi` of a dialect's package."""
    imports, names = _exports(_package(dialect))
    types: set[type] = {dialect}
    functions = [
        _function(name, op, types)
        for name, op in dialect.operations.items()
        if name.isidentifier() and not keyword.iskeyword(name)
    ]
    imports += [f"from {c.__module__} import {c.__name__}\n" for c in types if c.__name__ not in names]
    aliases = [f"_{c.__name__}: TypeAlias = {c.__name__} | {_literal(c)}\n" for c in types if issubclass(c, Enum)]
    assignment = f"\nDIALECT = {dialect.__name__}\n\n"
    return _HEAD + "".join(sorted(imports)) + _ALIASES + "".join(sorted(aliases)) + assignment + "\n".join(functions)


def _package(dialect: type[Dialect]) -> ModuleType:
    return sys.modules[dialect.__module__.rpartition(".")[0]]


def _exports(package: ModuleType) -> tuple[list[str], set[str]]:
    """The imports of a package's `__init__.py`, each of which it exports, and their names."""
    imports, names = [], set[str]()
    for node in ast.walk(ast.parse(inspect.getsource(package))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith(package.__name__.partition(".")[0])
        ):
            for imported in node.names:
                imports.append(f"from {node.module} import {imported.name} as {imported.name}\n")
                names.add(imported.name)
    return imports, names


def _function(name: str, op: type[Operation], used: set[type]) -> str:
    """The builder of an op; the classes of its attributes are added to `used`."""
    values = {group.name: group for group in (*op.spec.operands, *op.spec.results)}
    results = {group.name for group in op.spec.results}
    parameters, keywords = [], False
    for parameter in inspect.signature(op).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            parameters.append("*")
            keywords = True
        if parameter.name in values:
            annotation = _value(values[parameter.name], parameter.name in results, op)
        elif parameter.name in op.spec.attributes:
            annotation = _attribute(op.spec.attributes[parameter.name].codec, used)
        else:
            annotation = {"loc": "ir.Location", "ip": "ir.InsertionPoint"}[parameter.name]
        is_optional = parameter.default is None
        annotation += " | None" if is_optional and annotation != "Any" else ""
        parameters.append(f"{parameter.name}: {annotation}{' = None' if is_optional else ''}")
    head = f"def {name}({', '.join(parameters)}) -> {_returned(op.spec.results)}:"
    if len(head) > _LINE:
        lines = "".join(f"    {parameter},\n" for parameter in parameters)
        head = f"def {name}(\n{lines}) -> {_returned(op.spec.results)}:"
    return f"{head}\n    {_docstring(op)}\n"


def _docstring(op: type[Operation]) -> str:
    text = inspect.cleandoc(op.__doc__ or "").partition("\n\n")[0]
    summary = " ".join(text.split()).partition(". ")[0].rstrip(".")
    raw = "r" if "\\" in summary else ""
    return f'{raw}"""{summary}."""'


def _value(group: ValueField, is_result: bool, op: type[Operation]) -> str:
    one = "_ResultType" if is_result else "_Value"
    if group.name in op.spec.index_lists:
        return f"Sequence[{one} | int]"
    return f"Sequence[{one}]" if group.arity == "variadic" else one


def _attribute(codec: AttributeCodec, used: set[type]) -> str:
    """The Python type of an attribute's value."""
    if isinstance(codec, EnumCodec):
        used.add(codec.cases)
        return f"_{codec.cases.__name__}"
    if isinstance(codec, AttrCodec):
        used.add(codec.cls)
        return codec.cls.__name__
    if type(codec) is WordCodec:
        return f"Literal[{', '.join(repr(word) for word in codec.values)}]"
    types = ((BoolCodec, "bool"), (IntArrayCodec, "Sequence[int]"))
    plain = {IntCodec: "int", StringCodec: "str"}
    return next((text for kind, text in types if isinstance(codec, kind)), plain.get(type(codec), "Any"))


def _literal(cases: type[Enum]) -> str:
    return f"Literal[{', '.join(repr(str(case.value)) for case in cases)}]"


def _returned(results: Sequence[ValueField]) -> str:
    if not results:
        return "ir.OpView"
    singles = all(group.arity == "single" for group in results)
    if not singles:
        return "Any"
    return "ir.OpResult" if len(results) == 1 else f"tuple[{', '.join(['ir.OpResult'] * len(results))}]"


def files() -> Iterator[tuple[Path, str]]:
    """The path and the text of each stub of our dialects."""
    for dialect in dialects():
        yield Path(inspect.getfile(_package(dialect))).with_suffix(".pyi"), stub(dialect)


def main() -> None:
    """Write the stub of each dialect beside its `__init__.py`."""
    for path, text in files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
