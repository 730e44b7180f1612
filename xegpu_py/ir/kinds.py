"""Kinds of attribute values: how each stands in Python, in MLIR's own spelling, and in dialect syntax.

A kind is found from a Python annotation by `kind_of`: `int`, `bool`, `str`, `tuple[int, ...]`, an enum made with
`enum_attr`, an `Attr` class, or that class `| None`, or `Annotated[..., kind]` for one that is made where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin

from mlir import ir

from xegpu_py.ir.cursor import Cursor

if TYPE_CHECKING:
    from xegpu_py.ir.definition import Attr, Dialect

TypeText = Annotated[str, "an MLIR type"]
"""An MLIR type as text, such as `bf16`."""


class Scope(Protocol):
    """What surrounds a text that is read: its aliases, and the dialects known."""

    def read_type(self, cursor: Cursor) -> str:
        """One type, in MLIR's own spelling."""

    def read_attribute(self, cursor: Cursor) -> str:
        """One attribute, in MLIR's own spelling."""

    def resolve(self, text: str) -> str:
        """The type or attribute that the alias `text` names; any other text as it is."""


class Emitter(Protocol):
    """Collects IRDL constraint operations."""

    def constraint(self, text: str) -> str:
        """Add the constraint operation `text`; the name of its SSA value."""

    def any_of(self, names: list[str]) -> str:
        """The value of a constraint that any of the constraints `names` satisfies."""


class Kind:
    """One kind of attribute value."""

    summary = "any attribute"

    def read(self, cursor: Cursor, scope: Scope) -> Any:
        """Read a value in dialect syntax or in MLIR's own spelling."""
        start = cursor.skip()
        return self._decode_at(scope.read_attribute(cursor), cursor, start)

    def _decode_at(self, raw: str, cursor: Cursor, offset: int) -> Any:
        """The value of a text that stands at `offset`."""
        try:
            return self.decode(raw)
        except ValueError as e:
            raise cursor.fault(str(e), offset) from None

    def starts(self, cursor: Cursor) -> bool:
        """Whether the next token can begin a value."""
        return not any(cursor.at(token) for token in ("%", "{", "}", ":", ","))

    def decode(self, raw: str) -> Any:
        """The Python value of an attribute in MLIR's own spelling.

        Raises:
            ValueError: if it is not of this kind.
        """
        return raw

    def encode(self, value: Any) -> str:
        """The attribute in MLIR's own spelling."""
        return str(value)

    def to_ir(self, value: Any) -> ir.Attribute:
        """The attribute in the current MLIR context."""
        return ir.Attribute.parse(self.encode(value))

    def write(self, value: Any) -> str:
        """The value in dialect syntax."""
        return self.encode(value)

    def coerce(self, value: Any) -> Any:
        """The value that a builder's argument stands for.

        Raises:
            TypeError: if an argument of this type does not stand for such a value.
            ValueError: if its type fits, but no value of this kind is meant.
        """
        return value

    def irdl(self, emitter: Emitter) -> str:
        """Emit the constraint that holds attributes of this kind."""
        return emitter.constraint("irdl.any")

    def _refuse(self, raw: object) -> ValueError:
        return ValueError(f"expected {self.summary}, found '{raw}'")


class IntKind(Kind):
    """A 64-bit integer."""

    summary = "an integer"
    _RAW = re.compile(r"(-?(?:0x[0-9a-fA-F]+|\d+))(?:\s*:\s*(?:[su]?i\d+|index))?\Z")

    def read(self, cursor: Cursor, scope: Scope) -> int:
        value = cursor.integer()
        if value is None:
            raise cursor.expected(self.summary)
        if cursor.accept(":"):
            cursor.type_text()
        return value

    def starts(self, cursor: Cursor) -> bool:
        return cursor.peek_token().strip("'-")[:1].isdigit()

    def decode(self, raw: str) -> int:
        m = self._RAW.match(raw.strip())
        if not m:
            raise self._refuse(raw)
        return int(m[1], 16 if "0x" in m[1] else 10)

    def encode(self, value: int) -> str:
        return f"{value} : i64"

    def write(self, value: int) -> str:
        return str(value)

    def coerce(self, value: Any) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"expected {self.summary}, got {value!r}")
        return int(value.__index__())

    def irdl(self, emitter: Emitter) -> str:
        return emitter.constraint('irdl.base "#builtin.integer"')


class BoolKind(Kind):
    """A truth value."""

    summary = "true or false"
    _VALUES = ("false", "true")

    def read(self, cursor: Cursor, scope: Scope) -> bool:
        for i, word in enumerate(self._VALUES):
            if cursor.accept(word):
                return bool(i)
        raise cursor.expected(self.summary)

    def decode(self, raw: str) -> bool:
        if raw not in self._VALUES:
            raise self._refuse(raw)
        return raw == "true"

    def encode(self, value: bool) -> str:
        return self._VALUES[value]

    def coerce(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"expected {self.summary}, got {value!r}")
        return value

    def irdl(self, emitter: Emitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {v}") for v in self._VALUES])


class UnitKind(Kind):
    """A unit attribute, which is there or not: its name alone says so."""

    summary = "no value"

    def read(self, cursor: Cursor, scope: Scope) -> bool:
        cursor.expect("unit")
        return True

    def decode(self, raw: str) -> bool:
        if raw != "unit":
            raise self._refuse(raw)
        return True

    def encode(self, value: bool) -> str:
        return "unit"

    def write(self, value: bool) -> str:
        return ""


Unit = Annotated[bool, UnitKind()]
"""An attribute without a value. On an op it is True, or None if it is absent."""


class StringKind(Kind):
    """A string."""

    summary = "a string"
    _ESCAPE = re.compile(rb'\\([0-9a-fA-F]{2}|[nt"\\])')
    _NAMED: ClassVar = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}

    def read(self, cursor: Cursor, scope: Scope) -> str:
        value = cursor.string()
        if value is None:
            raise cursor.expected(self.summary)
        return self._unescape(value)

    def _unescape(self, text: str) -> str:
        def meant(m: re.Match[bytes]) -> bytes:
            return self._NAMED.get(m[1]) or bytes([int(m[1], 16)])

        return self._ESCAPE.sub(meant, text.encode()).decode("utf-8", "replace")

    def decode(self, raw: str) -> str:
        if not (len(raw) > 1 and raw[0] == raw[-1] == '"'):
            raise self._refuse(raw)
        return self._unescape(raw[1:-1])

    def encode(self, value: str) -> str:
        plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in value.encode())
        return f'"{"".join(plain)}"'

    def coerce(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"expected {self.summary}, got {value!r}")
        return value

    def irdl(self, emitter: Emitter) -> str:
        return emitter.constraint('irdl.base "#builtin.string"')


class WordKind(StringKind):
    """A string that is one of some words, and stands without quotes in dialect syntax."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.summary = f"one of {', '.join(words)}"

    def read(self, cursor: Cursor, scope: Scope) -> str:
        start = cursor.skip()
        word = cursor.string() or cursor.word()
        if word not in self.words:
            cursor.pos = start
            raise cursor.expected(self.summary)
        return word

    def decode(self, raw: str) -> str:
        word = super().decode(raw)
        if word not in self.words:
            raise self._refuse(word)
        return word

    def write(self, value: str) -> str:
        return value

    def coerce(self, value: Any) -> str:
        if value not in self.words:
            raise ValueError(f"expected {self.summary}, got {value!r}")
        return str(value)

    def irdl(self, emitter: Emitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {self.encode(w)}") for w in self.words])


class NumberKind(IntKind):
    """A 64-bit integer that is one of some numbers."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = tuple(numbers)
        self.summary = f"one of {', '.join(map(str, numbers))}"

    def decode(self, raw: str) -> int:
        number = super().decode(raw)
        if number not in self.numbers:
            raise self._refuse(raw)
        return number

    def coerce(self, value: Any) -> int:
        number = super().coerce(value)
        if number not in self.numbers:
            raise ValueError(f"expected {self.summary}, got {value!r}")
        return number

    def irdl(self, emitter: Emitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {self.encode(n)}") for n in self.numbers])


class IntArrayKind(Kind):
    """A list of 64-bit integers."""

    summary = "a list of integers"
    _RAW = re.compile(r"(?:array<i64(?::(.*))?>|\[(.*)\])\Z", re.DOTALL)

    def read(self, cursor: Cursor, scope: Scope) -> tuple[int, ...]:
        start = cursor.skip()
        if cursor.at("["):
            raw = cursor.balanced()
        elif cursor.at("array"):
            raw = cursor.type_text()
        else:
            raise cursor.expected(f"{self.summary} in brackets")
        found: tuple[int, ...] = self._decode_at(raw, cursor, start)
        return found

    def decode(self, raw: str) -> tuple[int, ...]:
        m = self._RAW.match(raw.strip())
        if not m:
            raise self._refuse(raw)
        items = (m[1] or m[2] or "").strip()
        if not items:
            return ()
        try:
            return tuple(map(int, items.split(",")))
        except ValueError:
            return tuple(IntKind().decode(item.strip()) for item in items.split(","))

    def encode(self, value: tuple[int, ...]) -> str:
        return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"

    def to_ir(self, value: tuple[int, ...]) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get(list(value))

    def write(self, value: tuple[int, ...]) -> str:
        return f"[{', '.join(map(str, value))}]"

    def coerce(self, value: Any) -> tuple[int, ...]:
        try:
            return tuple(IntKind().coerce(item) for item in value)
        except TypeError:
            raise TypeError(f"expected {self.summary}, got {value!r}") from None

    def irdl(self, emitter: Emitter) -> str:
        return emitter.constraint('irdl.base "#builtin.dense_array"')


class TypeKind(Kind):
    """A type, held as its text."""

    summary = "a type"

    def read(self, cursor: Cursor, scope: Scope) -> TypeText:
        return scope.read_type(cursor)

    def decode(self, raw: str) -> TypeText:
        return raw

    def coerce(self, value: Any) -> TypeText:
        return str(value)


class EnumKind(Kind):
    """One of the cases of an enum, held by an attribute of the dialect that has the case's name as parameter."""

    def __init__(self, dialect: type[Dialect], name: str, cases: type[Enum]) -> None:
        self.dialect = dialect
        self.name = name
        self.cases = cases
        self.mnemonic = f"#{dialect.name}.{name}"
        self._RAW = re.compile(rf'(?:{re.escape(self.mnemonic)}<)?"?(\w+)"?>?\Z')
        values = [str(c.value) for c in cases]
        self.summary = values[0] if len(values) == 1 else f"one of {', '.join(values)}"

    def read(self, cursor: Cursor, scope: Scope) -> Enum:
        start = cursor.skip()
        if cursor.at("#"):
            text = scope.resolve(scope.read_attribute(cursor))
        else:
            text = cursor.string() or cursor.word() or ""
        if not text:
            raise cursor.expected(self.summary)
        case: Enum = self._decode_at(text, cursor, start)
        return case

    def decode(self, raw: str) -> Enum:
        m = self._RAW.match(raw.strip())
        try:
            return self.cases(m[1] if m else raw)
        except ValueError:
            raise self._refuse(raw) from None

    def encode(self, value: Any) -> str:
        return f'{self.mnemonic}<"{value.value}">'

    def write(self, value: Any) -> str:
        return str(value.value)

    def coerce(self, value: Any) -> Enum:
        if not isinstance(value, (str, self.cases)):
            raise TypeError(f"expected {self.summary}, got {value!r}")
        try:
            return self.cases(value)
        except ValueError:
            raise ValueError(f"expected {self.summary}, got {value!r}") from None

    def irdl(self, emitter: Emitter) -> str:
        return emitter.constraint(f"irdl.base @{self.dialect.name}::@{self.name}")


class IntEnumKind(IntKind):
    """A case of an upstream enum that MLIR holds as a 64-bit integer."""

    def __init__(self, cases: type[Enum]) -> None:
        self.cases = cases
        self.summary = f"one of {', '.join(c.name for c in cases)}"

    def starts(self, cursor: Cursor) -> bool:
        return Kind.starts(self, cursor)

    def read(self, cursor: Cursor, scope: Scope) -> Any:
        start = cursor.skip()
        number = cursor.integer()
        if number is not None:
            if cursor.accept(":"):
                cursor.type_text()
            return self._case(lambda: self.cases(number), number, cursor, start)
        word = cursor.string() or cursor.word()
        return self._case(lambda: self.cases[word or ""], word, cursor, start)

    def _case(self, find: Callable[[], Any], found: object, cursor: Cursor, offset: int) -> Any:
        try:
            return find()
        except (KeyError, ValueError):
            what = cursor.peek_token() if found is None else f"'{found}'"
            raise cursor.fault(f"expected {self.summary}, found {what}", offset) from None

    def decode(self, raw: str) -> Any:
        number = super().decode(raw)
        try:
            return self.cases(number)
        except ValueError:
            raise self._refuse(raw) from None

    def encode(self, value: Any) -> str:
        return super().encode(value.value)

    def write(self, value: Any) -> str:
        return str(value.name)

    def coerce(self, value: Any) -> Any:
        try:
            return self.cases[value] if isinstance(value, str) else self.cases(int(value))
        except (KeyError, ValueError, TypeError):
            raise ValueError(f"expected {self.summary}, got {value!r}") from None


class AttrKind(Kind):
    """An attribute of a dialect of ours, or none of it where it is optional."""

    def __init__(self, cls: type[Attr], optional: bool = False) -> None:
        self.cls = cls
        self.optional = optional
        self.summary = f"{cls.mnemonic()} attribute"

    def read(self, cursor: Cursor, scope: Scope) -> Attr | None:
        if self.optional and cursor.accept("unit"):
            return None
        start = cursor.skip()
        if cursor.at("<"):
            return self.cls.read_body(cursor, scope)
        found: Attr | None = self._decode_at(scope.resolve(scope.read_attribute(cursor)), cursor, start)
        return found

    def decode(self, raw: str) -> Attr | None:
        if self.optional and raw == "unit":
            return None
        return self.cls.decode(raw)

    def encode(self, value: Attr | None) -> str:
        return "unit" if value is None else value.encode()

    def write(self, value: Attr | None) -> str:
        return "unit" if value is None else str(value)

    def coerce(self, value: Any) -> Attr | None:
        if not (isinstance(value, self.cls) or (value is None and self.optional)):
            raise TypeError(f"expected {self.summary}, got {value!r}")
        return value

    def irdl(self, emitter: Emitter) -> str:
        symbol = f"@{self.cls.dialect.name}::@{self.cls.name}"
        if not self.optional:
            return emitter.constraint(f"irdl.base {symbol}")
        parameters = [emitter.constraint("irdl.any") for _ in self.cls.parameters()]
        own = emitter.constraint(f"irdl.parametric {symbol}<{', '.join(parameters)}>")
        return emitter.any_of([own, emitter.constraint("irdl.is unit")])


_KINDS: dict[Any, Kind] = {
    int: IntKind(),
    bool: BoolKind(),
    str: StringKind(),
    tuple[int, ...]: IntArrayKind(),
    TypeText: TypeKind(),
    Any: Kind(),
}


def kind_of(annotation: Any) -> Kind:
    """The kind of value that a Python annotation speaks of.

    Raises:
        TypeError: if there is none.
    """
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, Kind):
            return mark
    if get_origin(annotation) in (UnionType, Union):
        cls = next(a for a in get_args(annotation) if a is not type(None))
        return AttrKind(cls, optional=True)
    if hasattr(annotation, "read_body"):
        return AttrKind(annotation)
    try:
        return _KINDS[annotation]
    except KeyError:
        raise TypeError(f"no kind of attribute value stands for {annotation!r}") from None


E_ = TypeVar("E_", bound=Enum)


def enum_attr(dialect: type[Dialect], name: str) -> Callable[[type[E_]], type[E_]]:
    """Make an enum of strings an attribute `#dialect.name<case>`."""

    def register(cases: type[E_]) -> type[E_]:
        kind = EnumKind(dialect, name, cases)
        _KINDS[cases] = kind
        dialect.enums[name] = kind
        return cases

    return register


def register_int_enum(cases: type[Enum]) -> None:
    """Let an upstream enum, which MLIR holds as an integer, be an attribute of ops."""
    _KINDS[cases] = IntEnumKind(cases)
