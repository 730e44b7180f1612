"""How a dialect, its types and its attributes are declared, and read from text."""

from __future__ import annotations

import inspect
import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_origin

from mlir import ir
from msgspec import Struct

from xegpu_py.deferred import pattern
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.bindings import register_dialect, search_dialects_below
from xegpu_py.ir.builtin import ConstraintEmitter, Decoded, TypeConstraint
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope, SyntaxFault, codec_of, register_codec, split_list
from xegpu_py.ir.diagnostics import Diagnostic, name_in_texts

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import dataclass_transform as dataclass_transform

    from xegpu_py.ir.pending_functions import PendingFunctions
else:

    def dataclass_transform(**_):
        """Only type checkers need it, and Python 3.10 has none."""
        return lambda cls: cls


# Dialects as classes: a `Dialect`, `Type`s and `Attr`s with named parameters, and `Operation`s with named fields.
#
# The syntax is that of `mlir.dialects.ext` in later releases of MLIR:
#
#     class Toy(Dialect, name="toy"):
#         '''What the dialect is for.'''
#
#     class Box(Type, dialect=Toy, name="box"):
#         '''A box of some size.'''
#         size: int
#
#     class PutOp(Operation, dialect=Toy, name="put"):
#         '''Puts values into a box.'''
#         box: Operand[Box]
#         values: Sequence[Operand[Any]]
#         gently: Attribute[bool] = default(False)
#         full: Result[Box]
#         assembly_format = "$box `,` $values attr-dict `:` type($box) `,` type($values) `->` type($full)"
#
# From such a class come its IRDL definition (`xegpu_py.ir.context`), its Python view and builder
# (`xegpu_py.ir.operation`), reading and printing (`xegpu_py.ir.assembly_format`), verification and the reference page.

# The bindings look for the Python side of a dialect in a module below this name. Where they find none they take no
# notice of registered operation classes, and search again at each access to an operation or type.
_MODULES = "xegpu_py.ir.defined"

search_dialects_below(_MODULES)

T = TypeVar("T")

Rule = Callable[[Sequence[ir.OpView], "PendingFunctions"], Iterable[Diagnostic]]
"""A check of all ops of a dialect in the verified op, in order. It notes the bodies that it decodes."""


def load_dialects_in(text: str) -> str:
    """The text itself. The current context loads the dialects of ours that it names, if it does so on demand."""
    load_dialects_of = getattr(ir.Context.current, "load_dialects_of", None)
    if load_dialects_of:
        load_dialects_of(text)
    return text


class Dialect:
    """A dialect. Subclasses give its `name` and, as docstring, what it is for.

    Attributes:
        name: the namespace in the IR.
        namespace: the namespace in texts, which several dialects may have: see `variant`.
        spellings: further spellings of the namespace that are read.
        others: attributes under these spellings that are not the dialect's: MLIR reads them.
        attribute_spellings: further spellings of op attributes that are read, in lower case, and what they mean.
        shorthands: names of attributes that stand for one value of another.
        borrowed: enums of other dialects that are read under this one's namespace, too, by name.
        type_names: names of builtin types that are read in op syntax, and the types they mean.
        any_attributes: whether ops may have attributes that their classes do not declare.
        checks_texts: whether a type or attribute that breaks a rule on its own is refused wherever it is read, as by
            MLIR, and not only as part of an op of the dialect.
        names_from_locations: whether values are printed with the names in their locations.
        declares_late: whether the fields of its ops are read when a context first defines the dialect. Until then
            nothing has to be imported that only their types need.
    """

    name: ClassVar[str]
    namespace: ClassVar[str]
    spellings: ClassVar[tuple[str, ...]] = ()
    others: ClassVar[tuple[str, ...]] = ()
    attribute_spellings: ClassVar[Mapping[str, str]] = {}
    type_names: ClassVar[Mapping[str, str]] = {}
    any_attributes: ClassVar[bool] = False
    checks_texts: ClassVar[bool] = False
    names_from_locations: ClassVar[bool] = False
    declares_late: ClassVar[bool] = False
    shorthands: ClassVar[Mapping[str, Attr]] = {}
    borrowed: ClassVar[Mapping[str, EnumCodec]] = {}
    operations: ClassVar[dict[str, type[ir.OpView]]]
    types: ClassVar[dict[str, type[Type]]]
    attributes: ClassVar[dict[str, type[Attr]]]
    enums: ClassVar[dict[str, EnumCodec]]
    carried: ClassVar[dict[str, type[CarriedOperation]]]
    rules: ClassVar[list[Rule]]
    undeclared: ClassVar[list[Callable[[], None]]]
    view: ClassVar[type]

    def __init_subclass__(cls, *, name: str, namespace: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name, cls.namespace = name, namespace or name
        if cls.namespace != name:
            name_in_texts(name, namespace)
        cls.operations, cls.types, cls.attributes, cls.enums, cls.carried = {}, {}, {}, {}, {}
        cls.rules, cls.undeclared = [], []
        cls.view = type(f"_{cls.__name__}", (ir.Dialect,), {"DIALECT_NAMESPACE": name})
        register_dialect(cls.view)
        sys.modules[f"{_MODULES}.{name}"] = sys.modules[cls.__module__]

    @classmethod
    def declare(cls) -> None:
        """Read the fields of ops that wait for it; see `declares_late`."""
        while cls.undeclared:
            cls.undeclared.pop()()

    @classmethod
    def is_other_spelling(cls, other: type[Dialect]) -> bool:
        """Whether another dialect is this one in the other spelling: its types and enums stand for those of this one
        that have their names.
        """
        return cls is not other and cls.namespace == other.namespace

    @classmethod
    def variant(cls, text: str) -> str | None:
        """The module of the dialect that has this namespace in a text; None if it is this one."""
        return None

    @classmethod
    def doubt(cls, text: str) -> tuple[int, str] | None:
        """The offset of a note, and the note, that explain why a text does not read; None if nothing does."""
        return None

    @classmethod
    def prepared(cls, text: str) -> str:
        """A text in the dialect as it is read. It has the same lines."""
        return text

    @classmethod
    def rule(cls, check: Rule) -> Rule:
        """Register a function that verifies rules on several ops. Each op by itself was found valid before."""
        cls.rules.append(check)
        return check

    @classmethod
    def implementing(cls, interface: type[Interface]) -> tuple[str, ...]:
        """The names of the ops that have an interface."""
        ops: list[Any] = [op for op in cls.operations.values() if issubclass(op, interface)]
        return tuple(dict.fromkeys(op.OPERATION_NAME for op in ops))

    @classmethod
    def function(cls, name: str) -> Any:
        """The building function of the op `name`: for use as a dialect module's `__getattr__`.

        Raises:
            AttributeError: if there is no such op.
        """
        op = cls.operations.get(name)
        if op is None:
            raise AttributeError(f"dialect '{cls.name}' has no operation '{name}'")
        return op.build


_SETTING = pattern(r"[A-Za-z_]\w*\s*=")


@dataclass_transform(frozen_default=True)
class _Parametrized:
    """Base of types and attributes: frozen dataclasses, whose fields are the parameters."""

    dialect: ClassVar[type[Dialect]]
    name: ClassVar[str]
    also_named: ClassVar[tuple[str, ...]] = ()
    spelled: ClassVar[dict[str, str]] = {}
    """Other names of parameters that are read; "" for what older text has and no value keeps."""
    _sigil: ClassVar[str]
    _codecs: ClassVar[dict[str, AttributeCodec]]

    def __init_subclass__(
        cls, *, dialect: type[Dialect] | None = None, name: str = "", also_named: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if dialect is None:
            return
        cls.dialect, cls.name, cls.also_named = dialect, name, also_named
        annotations = inspect.get_annotations(cls, eval_str=True)
        for reserved in {"name", "dialect"} & annotations.keys():
            raise TypeError(f"a parameter of {cls.__name__} cannot be named '{reserved}'")
        cls._codecs = {
            k: codec_of(annotation)
            for k, annotation in annotations.items()
            if ClassVar not in (annotation, get_origin(annotation))
        }
        table: dict[str, Any] = dialect.types if cls._sigil == "!" else dialect.attributes
        table.update(dict.fromkeys((name, *also_named), cls))
        # The methods below serve all classes: making them for each class takes most of the time of its definition.
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        values = {**dict(zip(self._codecs, args)), **kwargs}
        unset = [name for name in self._codecs if name not in values]
        values |= {name: getattr(type(self), name) for name in unset if hasattr(type(self), name)}
        if len(args) + len(kwargs) + len(unset) != len(self._codecs) or values.keys() != self._codecs.keys():
            raise TypeError(f"{type(self).__name__} takes the parameters {', '.join(self._codecs) or 'none'}")
        self.__dict__.update(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Change parameters of a new object to the form in which they are kept."""

    def _values(self) -> tuple[Any, ...]:
        return tuple([self.__dict__[name] for name in self._codecs])

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._codecs, self._values()))
        return f"{type(self).__name__}({values})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    @classmethod
    def parameters(cls) -> dict[str, AttributeCodec]:
        """The parameters' names and codecs, in order."""
        return cls._codecs

    @classmethod
    def mnemonic(cls) -> str:
        """The name with its namespace and sigil, such as `!xegpu.nbarrier`."""
        return f"{cls._sigil}{cls.dialect.name}.{cls.name}"

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> Self:
        """Read what follows the name, by default `<a = value, b = value>` or MLIR's own `<value, value>`.

        Parameters that have a default may be left out, and then the brackets as well.
        """
        # A bracket apart from the name of a type without parameters is not its own.
        has_body = cursor.at("<") if cls._codecs else cursor.text.startswith("<", cursor.pos)
        if not has_body and not cls._needed():
            return cls()
        cursor.expect("<")
        if not cursor.at(">") and not _SETTING.match(cursor.text, cursor.skip()):
            return cls._read_raw(cursor, scope)
        return cls.read_settings(cursor, scope, ">")

    @classmethod
    def _needed(cls) -> list[str]:
        """The parameters without a default."""
        return [k for k in cls._codecs if not hasattr(cls, k)]

    @classmethod
    def read_settings(cls, cursor: Cursor, scope: ParserScope, closing: str) -> Self:
        """Read `a = value, b = value`, in any order, and a closing bracket.

        Raises:
            SyntaxFault: at a name that is none of a parameter's, or is given twice; or if a parameter is missing.
        """
        settings: dict[str, Any] = {}
        settings_start = cursor.skip()
        for start in cursor.entries(closing):
            key = cursor.word() or ""
            name = cls.spelled.get(key, key)
            codec = AttributeCodec() if key and not name else cls._codecs.get(name)
            if codec is None:
                names = ", ".join(k for k in cls._codecs if k not in settings)
                raise cursor.fault(f"expected {names or 'no further parameter'} in {cls.mnemonic()}", start)
            if name in settings:
                raise cursor.fault(f"'{key}' is given twice", start)
            cursor.expect("=")
            value = codec.read(cursor, scope)
            if name:
                settings[name] = value
        missing_keys = [k for k in cls._needed() if k not in settings]
        if missing_keys:
            raise cursor.fault(f"{cls.mnemonic()} needs {', '.join(missing_keys)}", settings_start)
        return cls(**settings)

    @classmethod
    def _read_raw(cls, cursor: Cursor, scope: ParserScope) -> Self:
        parameters = []
        for i, (name, codec) in enumerate(cls._codecs.items()):
            # Text of a version that did not have the last parameters yet.
            if i and hasattr(cls, name) and cursor.at(">"):
                break
            if i:
                cursor.expect(",")
            parameters.append(codec.read(cursor, scope))
        cursor.expect(">")
        return cls(*parameters)

    def problem(self) -> str | None:
        """The rule that this breaks on its own, as a message; None if it breaks none."""
        return None

    def write_body(self, print_defaults: bool = False) -> str:
        """The text after the name, by default `<a = value, b = value>`, without what is absent or has its default."""
        if not self._codecs:
            return ""
        settings = []
        for name, codec in self._codecs.items():
            value = getattr(self, name)
            if value is None or (not print_defaults and value == getattr(type(self), name, None)):
                continue
            settings.append(f"{name} = {value.write_body() if isinstance(value, Attr) else codec.write(value)}")
        return f"<{', '.join(settings)}>"

    def write(self, print_defaults: bool = False) -> str:
        """The whole in dialect syntax."""
        return self.mnemonic() + self.write_body(print_defaults)

    def __str__(self) -> str:
        return self.write()

    def encode(self) -> str:
        """The whole in MLIR's own spelling, as IRDL definitions have it."""
        if not self._codecs:
            return self.mnemonic()
        values = (codec.encode(getattr(self, k)) for k, codec in self._codecs.items())
        return f"{self.mnemonic()}<{', '.join(values)}>"

    @classmethod
    @lru_cache(maxsize=4096)
    def decode(cls, raw: str) -> Self:
        """The value of a type or attribute in MLIR's own spelling.

        Raises:
            ValueError: if it is another type or attribute.
        """
        head = cls.mnemonic()
        if not (raw == head or raw.startswith(head + "<")):
            raise ValueError(f"expected {head}, but got {raw}")
        if not cls._codecs:
            return cls()
        parameter_texts = split_list(raw[len(head) + 1 : -1])
        if len(parameter_texts) != len(cls._codecs):
            raise ValueError(f"expected {len(cls._codecs)} parameters in {raw}")
        return cls(
            *(codec.decode(parameter_text) for codec, parameter_text in zip(cls._codecs.values(), parameter_texts))
        )


class Type(_Parametrized, TypeConstraint):
    """A type. Subclasses have fields for its parameters, and stand for themselves as constraint."""

    _sigil = "!"
    _decoded: ClassVar[Decoded[Any]]
    _accepted: ClassVar[Decoded[bool]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        by_text = lru_cache(maxsize=4096)(cls.decode)
        cls._decoded = Decoded(lambda attr_type: by_text(str(attr_type)))
        cls._accepted = Decoded(lambda attr_type: cls.accepts(str(attr_type)))
        if "dialect" in kwargs:
            cls.summary = cls.mnemonic()
            cls.fixed = None if cls._codecs else cls.mnemonic()

    @classmethod
    def accepts(cls, text: str) -> bool:
        return text == cls.mnemonic() or text.startswith(cls.mnemonic() + "<")

    @classmethod
    def matches(cls, value: ir.Type | ir.Value) -> bool:
        """Whether an MLIR type, or a value's type, is one of these."""
        return cls._accepted[value if isinstance(value, ir.Type) else value.type]

    @classmethod
    def irdl(cls, emitter: ConstraintEmitter) -> str:
        symbol = f"@{cls.dialect.name}::@{cls.name}"
        # Unlike irdl.base this one can be a member of an irdl.any_of.
        return emitter.constraint(f"irdl.base {symbol}" if cls._codecs else f"irdl.parametric {symbol}<>")

    def to_ir(self) -> ir.Type:
        """The type in the current MLIR context."""
        return ir.Type.parse(load_dialects_in(_encoded(self)))

    @classmethod
    def of(cls, value: ir.Type | ir.Value) -> Self:
        """The parameters of an MLIR type, or of a value's type.

        Raises:
            ValueError: if it is another type.
        """
        return cls._decoded[value if isinstance(value, ir.Type) else value.type]


@lru_cache(maxsize=4096)
def _encoded(type_: Type) -> str:
    return type_.encode()


class Attr(_Parametrized):
    """An attribute. Subclasses have fields for its parameters."""

    _sigil = "#"

    @classmethod
    def codec(cls, optional: bool) -> AttrCodec:
        """The codec of the attribute, or of the attribute or none."""
        return AttrCodec(cls, optional)

    def to_ir(self) -> ir.Attribute:
        """The attribute in the current MLIR context."""
        return ir.Attribute.parse(load_dialects_in(self.encode()))


class AttrCodec(AttributeCodec):
    """An attribute of a dialect of ours, or none of it where it is optional."""

    def __init__(self, cls: type[Attr], optional: bool = False) -> None:
        self.cls = cls
        self.optional = optional
        self.summary = f"{cls.mnemonic()} attribute"

    def read(self, cursor: Cursor, scope: ParserScope) -> Attr | None:
        if self.optional and cursor.accept("unit"):
            return None
        start = cursor.skip()
        if cursor.at("<"):
            return self.cls.read_body(cursor, scope)
        return self._decode_at(scope.resolve(scope.read_attribute(cursor)), cursor, start)

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
            raise TypeError(f"expected {self.summary}, but got {value!r}")
        return value

    def irdl(self, emitter: ConstraintEmitter) -> str:
        symbol = f"@{self.cls.dialect.name}::@{self.cls.name}"
        if not self.optional:
            return emitter.constraint(f"irdl.base {symbol}")
        parameters = [emitter.constraint("irdl.any") for _ in self.cls.parameters()]
        parametric = emitter.constraint(f"irdl.parametric {symbol}<{', '.join(parameters)}>")
        return emitter.any_of([parametric, emitter.constraint("irdl.is unit")])


class EnumCodec(AttributeCodec):
    """One of the cases of an enum, held by an attribute of the dialect that has the case's name as parameter."""

    def __init__(self, dialect: type[Dialect], name: str, enum_class: type[Enum]) -> None:
        self.dialect = dialect
        self.name = name
        self.cases = enum_class
        self.mnemonic = f"#{dialect.name}.{name}"
        values = [str(c.value) for c in enum_class]
        self.summary = values[0] if len(values) == 1 else f"one of {', '.join(values)}"

    @cached_property
    def _raw(self) -> re.Pattern[str]:
        return re.compile(rf'(?:{re.escape(self.mnemonic)}<)?"?(\w+)"?>?\Z')

    def read(self, cursor: Cursor, scope: ParserScope) -> Enum:
        start = cursor.skip()
        if cursor.at("#"):
            text = scope.resolve(scope.read_attribute(cursor))
        else:
            text = cursor.string() or cursor.word() or ""
        if not text:
            raise cursor.expected(self.summary)
        return self._decode_at(text, cursor, start)

    def decode(self, raw: str) -> Enum:
        m = self._raw.match(raw.strip())
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
            raise TypeError(f"expected {self.summary}, but got {value!r}")
        try:
            return self.cases(value)
        except ValueError:
            raise ValueError(f"expected {self.summary}, but got {value!r}") from None

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.constraint(f"irdl.base @{self.dialect.name}::@{self.name}")


E_ = TypeVar("E_", bound=Enum)


def enum_attr(dialect: type[Dialect], name: str) -> Callable[[type[E_]], type[E_]]:
    """Make an enum of strings an attribute `#dialect.name<case>`."""

    def register(enum_class: type[E_]) -> type[E_]:
        codec = EnumCodec(dialect, name, enum_class)
        register_codec(enum_class, codec)
        dialect.enums[name] = codec
        return enum_class

    return register


class CarriedOperation:
    """An op that MLIR holds as one of its own: ops of IRDL can be neither symbols nor terminators.

    Its syntax is that of its carrier but for the name. A carrier that is a function has the op's name as a unit
    attribute; the carriers of terminators and calls are told by the function or op that they are in.

    Attributes:
        carrier: the op of MLIR's.
    """

    dialect: ClassVar[type[Dialect]]
    name: ClassVar[str]
    carrier: ClassVar[str]

    def __init_subclass__(cls, *, dialect: type[Dialect], name: str, carrier: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.dialect, cls.name, cls.carrier = dialect, name, carrier
        dialect.carried[name] = cls

    @classmethod
    def mnemonic(cls) -> str:
        """The name with its namespace, such as `tt.return`."""
        return f"{cls.dialect.name}.{cls.name}"


class Interface(metaclass=ABCMeta):  # noqa: B024
    """An interface of ops. An op's class lists its `interfaces`, and `isinstance` tests for one.

    The fields that it annotates are fields of those ops, after their own.
    """


class Operand(Generic[T]):
    """Annotates an operand whose type fulfils the constraint `T`. On an op it is the `ir.Value`."""

    if TYPE_CHECKING:

        def __get__(self, op: Any, owner: Any = None) -> Any: ...


class Result(Generic[T]):
    """Annotates a result whose type fulfils the constraint `T`. On an op it is the `ir.OpResult`."""

    if TYPE_CHECKING:

        def __get__(self, op: Any, owner: Any = None) -> Any: ...


class Attribute(Generic[T]):
    """Annotates an attribute whose value has the type `T`. On an op it is the Python value."""

    if TYPE_CHECKING:

        def __get__(self, op: Any, owner: Any = None) -> T: ...


class Region:
    """Annotates a region. A `Region | None` may have no blocks, and is not printed then."""


class IndexList:
    """Annotates a list of index operands and constants mixed, such as `[%x, 4]`.

    In generic form it is a variadic operand of the field's name and an attribute `static_` and the name, that holds
    `DYNAMIC` where an operand stands.
    """

    if TYPE_CHECKING:

        def __get__(self, op: Any, owner: Any = None) -> Any: ...


FUNCTIONS = ("func.func", "gpu.func")

DYNAMIC = -(2**63)
"""The static entry of an `IndexList` where an operand is; MLIR's own sentinel."""


class Default(Struct, frozen=True):
    """The mark of a field that `default` sets."""

    value: Any


def default(value: Any) -> Any:
    """Marks an attribute field that may be left out, and gives its value in this case."""
    return Default(value)


# Types and attributes of dialect syntax, read into MLIR's own spelling.

STRING = r'"(?:[^"\\\n]|\\.)*"'
"""A regular expression of a string literal."""


class TypeReader:
    """Reads types and attributes. It is a `Scope`: it knows the aliases defined so far and the dialects.

    Each text is read once.
    """

    def __init__(self, dialects: Sequence[type[Dialect]]) -> None:
        self.dialects = dialects
        self.aliases: dict[str, str] = {}
        # A name in the IR comes before another dialect's name in texts.
        self._by_name = {s: d for d in dialects for s in (d.namespace, *d.spellings)} | {d.name: d for d in dialects}
        not_foreign = {d: "".join(rf"(?!\.{o}\b)" for o in d.others) for d in dialects}
        self._names = "|".join(re.escape(name) + not_foreign[d] for name, d in self._by_name.items())
        self._own = re.compile(rf"(?P<sigil>[!#])(?P<owner>{self._names})\.(?P<param>\w+)")
        self._own_or_opaque = pattern(rf"//[^\n]*|{STRING}|{self._own.pattern}")
        self._types: dict[str, str] = {}

    def resolve(self, text: str) -> str:
        """The type or attribute that the alias `text` names; any other text as it is."""
        for _ in range(len(self.aliases) + 1):
            if text not in self.aliases:
                break
            text = self.aliases[text]
        return text

    def read_type(self, cursor: Cursor) -> str:
        """One type in MLIR's own spelling. A type of ours may stand without its dialect's name."""
        start = cursor.skip()
        if cursor.at("!"):
            if self._owner(cursor):
                return self._parametrized(cursor)
            return cursor.type_text()
        keyword = cursor.word() or ""
        cursor.pos = start
        for dialect in self.dialects:
            if keyword in dialect.types:
                return self._parametrized(cursor, dialect)
        return self._builtin(cursor.type_text(), start)

    def _builtin(self, text: str, offset: int) -> str:
        cached = self._types.get(text)
        if cached is None:
            cached = text
            for dialect in self.dialects:
                for name, spelled_type in dialect.type_names.items():
                    if name in cached:
                        cached = re.sub(rf"(?:(?<![\w!#%$.])|(?<=\dx)|(?<=\d\sx\s)){name}\b", spelled_type, cached)
            cached = self._types[text] = self._nested(cached, offset)
        return cached

    def _nested(self, text: str, offset: int) -> str:
        """A text of MLIR's own, read at `offset`, in which types and attributes of ours may stand."""
        if not any(name in text for name in self._by_name):
            return text
        out, copied_to = [], 0
        pos = 0
        while m := self._own_or_opaque.search(text, pos):
            pos = m.end()
            if m["sigil"]:
                cursor = Cursor(text, m.start())
                try:
                    raw = self._parametrized(cursor)
                except SyntaxFault as fault:
                    raise SyntaxFault(offset + fault.offset, fault.message) from None
                out += [text[copied_to : m.start()], raw]
                pos = copied_to = cursor.pos
        return "".join([*out, text[copied_to:]])

    def read_attribute(self, cursor: Cursor) -> str:
        """One attribute in MLIR's own spelling."""
        start = cursor.skip()
        if cursor.at("#"):
            if self._owner(cursor):
                return self._parametrized(cursor)
            return self._nested(cursor.symbol_text(), start)
        text = cursor.until(",}>])") if not cursor.at_end() else ""
        if not text:
            raise cursor.expected("an attribute")
        return self._nested(text, start)

    def _owner(self, cursor: Cursor) -> re.Match[str] | None:
        return self._own.match(cursor.text, cursor.skip())

    def _parametrized(self, cursor: Cursor, bare: type[Dialect] | None = None) -> str:
        """A type or attribute of ours at the cursor, in MLIR's own spelling."""
        start = cursor.skip()
        if bare:
            name, dialect, sigil = cursor.word() or "", bare, "!"
        else:
            m = self._owner(cursor)
            assert m
            cursor.pos = m.end()
            name, dialect, sigil = m["param"], self._by_name[m["owner"]], m["sigil"]
        return self._body(cursor, start, sigil, dialect, name)

    def _body(self, cursor: Cursor, start: int, sigil: str, dialect: type[Dialect], name: str) -> str:
        """Read what follows the name of a type or attribute of ours; the whole in MLIR's own spelling."""
        body_start = cursor.pos
        body = _bracketed(cursor)
        cached = self._types.get(sigil + name + body)
        if cached is None:
            cursor.pos = body_start
            cached = self._types[sigil + name + body] = self._read_parametrized(cursor, start, dialect, sigil, name)
        return cached

    def _read_parametrized(self, cursor: Cursor, start: int, dialect: type[Dialect], sigil: str, name: str) -> str:
        enum = dialect.enums.get(name, dialect.borrowed.get(name)) if sigil == "#" else None
        if enum:
            cursor.expect("<")
            enumerator = enum.read(cursor, self)
            cursor.expect(">")
            return enum.encode(enumerator)
        if sigil == "#" and name in dialect.shorthands:
            return dialect.shorthands[name].encode()
        table = dialect.types if sigil == "!" else dialect.attributes
        cls = table.get(name)
        if cls is None:
            category, names = ("type", [*table]) if sigil == "!" else ("attribute", [*table, *dialect.enums])
            hint = did_you_mean(name, names, f"{sigil}{dialect.name}.")
            raise SyntaxFault(start, f"unknown {category} '{sigil}{dialect.name}.{name}'{hint}")
        value = cls.read_body(cursor, self)
        problem = value.problem() if dialect.checks_texts else None
        if problem:
            raise SyntaxFault(start, problem)
        return str(value.encode())


def _bracketed(cursor: Cursor) -> str:
    """The `<...>` at the cursor, consumed; empty where there is none, or none that ends."""
    if not cursor.text.startswith("<", cursor.pos):
        return ""
    try:
        return cursor.balanced()
    except SyntaxFault:
        return ""


@lru_cache(maxsize=16)
def _type_reader(dialects: tuple[type[Dialect], ...]) -> TypeReader:
    return TypeReader(dialects)


def parse_type(text: str) -> ir.Type:
    """The type of this text, in dialect syntax or in MLIR's own spelling, in the current context.

    Raises:
        ValueError: if it is not a type.
    """
    cursor = Cursor(load_dialects_in(text))
    try:
        raw = _type_reader(getattr(ir.Context.current, "irdl_dialects", ())).read_type(cursor)
        if not cursor.at_end():
            raise cursor.expected("the end of the type")
        return ir.Type.parse(raw)
    except SyntaxFault as fault:
        raise ValueError(f"type '{text}': {fault.message}") from None
    except ir.MLIRError as e:
        raise ValueError(f"type '{text}': {e.error_diagnostics[0].message}") from None
