"""Declaration and builders of ops, and accessors of their fields."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from types import UnionType
from typing import Any, ClassVar, Literal, NoReturn, Protocol, Union, get_args, get_origin

from mlir import ir
from msgspec import Struct, field

from xegpu_py.deferred import pattern
from xegpu_py.ir import definition as d
from xegpu_py.ir.bindings import register_operation
from xegpu_py.ir.builtin import Decoded, Index, TypeConstraint, alternatives
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope, codec_of
from xegpu_py.ir.definition import Attribute, Default, IndexList, Operand, Region, Result, parse_type
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, position_of, sources_of

# Operation classes: the view with named accessors, the builder, and what a syntax of their text must do.

_PLAIN_VECTOR = pattern(r"vector<(?:\d+x)+(?:index|i\d+|b?f\d+)>\Z")
"""Vectors whose text means the same in dialect syntax and in MLIR's own."""


Broken = tuple[str, tuple[str, ...]] | None
"""The message and the notes of a broken rule."""


class VerifyError(Exception):
    """An op that breaks a rule of its dialect.

    Attributes:
        message: the broken rule.
        notes: the rule, and the fix where there is one.
    """

    def __init__(self, message: str, *notes: str) -> None:
        self.message = message
        self.notes = notes
        super().__init__(message)


class BuildError(DiagnosticError, TypeError):
    """A builder is called with operands, types or attributes that break a rule of the op."""


ReadOperand = Callable[[str], str]
"""Takes the name of an SSA value as read, gives what stands for it in `ParsedOp`."""


class Reading(Struct, frozen=True):
    """The state of reading one op: the position, the surroundings, and the meaning of SSA names."""

    cursor: Cursor
    scope: ParserScope
    operand: ReadOperand


class Syntax(Protocol):
    """Reader and writer of the text of an op after its name. `str` of it is shown in the reference page."""

    def read(self, op: type[Operation], r: Reading) -> ParsedOp:
        """Read an op's text after its name.

        Raises:
            SyntaxFault: where the text does not fit.
        """

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool = False) -> str:
        """The text of an op after its name, with a leading space where one belongs.

        Raises:
            ValueError: if there is no such text for the parts; the op is printed in generic form then.
        """


class Operation(ir.OpView):  # type: ignore[misc]
    """Base of operation classes; see `xegpu_py.ir.definition` for how one is written.

    A class without dialect is the base of an op in both spellings of a dialect: its name, interfaces, fields and rules
    are theirs, and its types stand for those of the same name in each.

    Attributes:
        assembly_format: the syntax, in the language of MLIR's ODS (see `xegpu_py.ir.assembly_format`), or a `Syntax`
            with a reader and writer of its own. This form is printed.
        also_reads: further forms that are read, tried in this order after `assembly_format`.
        also_attributes: attributes that older text has on the op; `reads_as` takes them from `ParsedOp.extra`.
        flags: words that may stand alone in the attribute dictionary, and the (attribute, value) that they mean.
        effects: effects of the op beside its results, of "read" and "write" (memory), "sync", "variables" and
            "control"; None if that is not known.
        same_type: a field whose type need not be given, and the field that has the same one, which is verified.
        quoted: whether the name stands in quotes, as in MLIR's generic form.
        mixed: variadic fields whose values need not have one type; they hold at most `MIXED` values.
        base_name: the name without its dialect's.
        interfaces: those of the op and of its base.
        accessors: functions that return what an annotation declares, of the op with or without its view.
    """

    dialect_class: ClassVar[type[d.Dialect]]
    spec: ClassVar[OpSpec]
    assembly_format: ClassVar[str | Syntax]
    also_reads: ClassVar[tuple[str | Syntax, ...]] = ()
    also_attributes: ClassVar[frozenset[str]] = frozenset()
    flags: ClassVar[Mapping[str, tuple[str, Any]]] = {}
    effects: ClassVar[frozenset[str] | None] = None
    same_type: ClassVar[tuple[str, str] | None] = None
    quoted: ClassVar[bool] = False
    mixed: ClassVar[frozenset[str]] = frozenset()
    base_name: ClassVar[str] = ""
    interfaces: ClassVar[tuple[type[d.Interface], ...]] = ()
    accessors: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def __init_subclass__(
        cls,
        *,
        dialect: type[d.Dialect] | None = None,
        name: str = "",
        also_named: Iterable[str] = (),
        interfaces: Sequence[type[d.Interface]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.base_name, cls.interfaces = name or cls.base_name, (*cls.interfaces, *interfaces)
        if dialect is None:
            return
        cls.dialect_class = dialect
        cls.OPERATION_NAME = f"{dialect.name}.{cls.base_name}"
        for interface in cls.interfaces:
            interface.register(cls)
        register_operation(dialect.view, cls)
        if dialect.declares_late:
            dialect.undeclared.append(cls._declare)
        else:
            cls._declare()
        for spelled in (cls.base_name, *also_named):
            dialect.operations[spelled] = cls

    @classmethod
    def _declare(cls) -> None:
        """Make the accessors and the builder from the annotations."""
        cls.spec = spec_of(cls)
        cls._ODS_REGIONS = (len(cls.spec.regions), True)
        cls._ODS_OPERAND_SEGMENTS = _segments(cls.spec, "operand")
        cls._ODS_RESULT_SEGMENTS = _segments(cls.spec, "result")
        cls.accessors = _accessors(cls.spec)
        for attr, accessor in cls.accessors.items():
            setattr(cls, attr, property(accessor))
        signature = _Signature(cls.spec)
        setattr(cls, "__signature__", signature)  # noqa: B010
        setattr(cls, "__init__", _make_init(cls, signature))  # noqa: B010

    def verify_op(self) -> None:
        """Check the rules that the IRDL definition cannot hold. It may depend on types and attributes only.

        Raises:
            VerifyError: if one is broken.
        """

    @classmethod
    def declared_type(cls, ir_type: ir.Type) -> d.Type | None:
        """A type that the op's dialect declares; None for another one."""
        text = str(ir_type)
        owner, _, name = text.partition("<")[0].partition(".")
        declared = cls.dialect_class.types.get(name) if owner == f"!{cls.dialect_class.name}" else None
        return declared.decode(text) if declared else None

    def broken_rule(self) -> Broken:
        """The message and notes of a rule that the op breaks, or None: on types of values, `same_type`, `verify_op`."""
        operation = self.operation
        for kind, values in (("operand", operation.operands), ("result", operation.results)):
            start = 0
            for group, size in zip(self.spec.groups(kind), group_sizes(self, kind)):
                for value in values[start : start + size]:
                    if not group.accepts(str(value.type)):
                        return f"{kind} '{group.name}' must be {group.summary}, but got {value.type}", ()
                start += size
        if self.same_type:
            (name, field_type), (other_name, expected_type) = (
                (field, getattr(self, field).type) for field in self.same_type
            )
            if field_type != expected_type:
                field_type, expected_type = (self.declared_type(t) or t for t in (field_type, expected_type))
                return f"{name} must have the {other_name}'s type {expected_type}, but got {field_type}", ()
        try:
            self.verify_op()
        except VerifyError as e:
            return e.message, e.notes
        return None

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        """Types in MLIR's own spelling of operands and results that neither the user nor the class gives.

        By default, this is the type that `same_type` gives.
        """
        return {cls.same_type[0]: parsed.type_of(cls.same_type[1])} if cls.same_type else {}

    @classmethod
    def reads_as(cls, parsed: ParsedOp) -> str | None:
        """Why a reading of the text by one of several forms is not what was meant; None if it may be."""
        return None

    @classmethod
    def infer_attributes(cls, parsed: ParsedOp) -> dict[str, Any]:
        """Attributes, by name, that the text omits and that follow from the types."""
        return {}

    @classmethod
    def result_name(cls, parsed: ParsedOp) -> str | None:
        """The SSA name to print for the op's result, without `%`; None for MLIR's number."""
        return None

    def fail(self, message: str, *notes: str) -> NoReturn:
        """Raise a `VerifyError`."""
        raise VerifyError(message, *notes)

    @classmethod
    def build(cls, *args: Any, **kwargs: Any) -> Any:
        """Build the op; its result, or results, or the op itself if it has none."""
        op = cls(*args, **kwargs)
        results = list(op.operation.results)
        return results[0] if len(results) == 1 else tuple(results) if results else op


def _segments(spec: OpSpec, group_kind: str) -> list[int] | None:
    if not spec.needs_segments(group_kind):
        return None
    sizes = {"single": [1], "optional": [0], "variadic": [-1], "mixed": [0] * MIXED}
    return [size for g in spec.groups(group_kind) for size in sizes["mixed" if g.mixed else g.arity]]


def _accessors(spec: OpSpec) -> dict[str, Callable[[Any], Any]]:
    accessors: dict[str, Callable[[Any], Any]] = {}
    for i, operand in enumerate(spec.operands):
        accessors[operand.name] = _value_accessor(spec, "operand", i)
    for i, result in enumerate(spec.results):
        accessors[result.name] = _value_accessor(spec, "result", i)
    for attribute in spec.attributes.values():
        accessors[attribute.name] = _attribute_accessor(attribute)
    for name in spec.index_lists:
        accessors[name] = _index_list_accessor(accessors[name], accessors[STATIC + name])
    for i, region in enumerate(spec.regions):
        accessors[region.name] = _region_accessor(i)
    return accessors


_SIZES: Decoded[list[int]] = Decoded(list)


def group_sizes(op: ir.OpView, group_kind: str) -> list[int]:
    """The sizes of an op's operand or result groups."""
    spec, operation = op.spec, op.operation
    values = operation.operands if group_kind == "operand" else operation.results
    segments = _SIZES[operation.attributes[SEGMENTS[group_kind]]] if spec.needs_segments(group_kind) else None
    return spec.sizes(group_kind, len(values), segments)


def _value_accessor(spec: OpSpec, group_kind: str, index: int) -> Callable[[Any], Any]:
    groups = spec.groups(group_kind)
    arity = groups[index].arity
    operands, segments = group_kind == "operand", SEGMENTS[group_kind]
    if all(g.arity == "single" for g in groups[: index + 1]):
        if operands:
            return lambda self: self.operation.operands[index]
        return lambda self: self.operation.results[index]

    def bounds(attribute: ir.Attribute) -> tuple[int, int]:
        sizes = collapsed(groups, list(attribute))
        start = sum(sizes[:index])
        return start, start + sizes[index]

    by_segments = Decoded(bounds) if spec.needs_segments(group_kind) else None
    # Without segments one group has no fixed size: this one, or one before it.
    groups_after = len(groups) - 1 - index

    def get(self: Any) -> Any:
        operation = self.operation
        values = operation.operands if operands else operation.results
        if by_segments is not None:
            start, stop = by_segments[operation.attributes[segments]]
        else:
            stop = len(values) - groups_after
            start = stop - 1 if arity == "single" else index
        if arity == "variadic":
            return [values[i] for i in range(start, stop)]
        return values[start] if stop > start else None

    return get


_IMPLEMENTED: dict[tuple[str, type], bool] = {}


def implements(op: ir.Operation, interface: type) -> bool:
    """Whether `op.opview` is of an interface or class. To ask `isinstance` takes five times as long."""
    key = op.name, interface
    result = _IMPLEMENTED.get(key)
    if result is None:
        result = _IMPLEMENTED[key] = issubclass(class_of(op), interface)
    return result


_CLASSES: dict[str, type[Any]] = {}


def class_of(op: ir.Operation) -> type[Any]:
    """The class of `op.opview`. To make the view takes five times as long."""
    name = op.name
    result = _CLASSES.get(name)
    if result is None:
        result = _CLASSES[name] = type(op.opview)
    return result


def field_of(op: ir.Operation, name: str, default: Any = None) -> Any:
    """The value of a field of `op.opview`; the default if the op has no such field."""
    accessors = getattr(class_of(op), "accessors", None)
    return accessors[name](op) if accessors and name in accessors else default


def _index_list_accessor(operands: Callable[[Any], Any], static: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def get(self: Any) -> list[Any]:
        entries = list(static(self))
        if d.DYNAMIC in entries:
            dynamic: Iterator[Any] = iter(operands(self))
            return [next(dynamic) if v == d.DYNAMIC else v for v in entries]
        return entries

    return get


def _attribute_accessor(attribute: AttributeField) -> Callable[[Any], Any]:
    decode = lru_cache(maxsize=256)(attribute.codec.decode)
    decoded = Decoded(lambda found: decode(str(found)))
    name, default = attribute.name, attribute.default

    def get(self: Any) -> Any:
        attribute = self.operation.attributes.get(name)
        return default if attribute is None else decoded[attribute]

    return get


def _region_accessor(index: int) -> Callable[[Any], Any]:
    return lambda self: self.operation.regions[index]


class _Signature:
    """The signature of an op class, for `help` and for its constructor.

    It is made when it is first needed: the signatures of all ops take a millisecond.
    """

    def __init__(self, spec: OpSpec) -> None:
        self._spec = spec

    def __get__(self, op: Operation | None, cls: type[Operation]) -> inspect.Signature:
        return inspect.Signature(self.parameters[1:])

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of the constructor."""
        spec = self._spec
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        keyword, positional = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        result_names = {r.name for r in spec.results}
        required = [n for n in spec.order if _is_required(spec, n) and n not in result_names]
        for name in required:
            parameters.append(inspect.Parameter(name, positional))
        # For an op without operands, a caller gives only the attributes.
        attributes_only = not required and not spec.operands
        for name in spec.order:
            if name not in required and not any(r.name == name for r in spec.regions):
                parameters.append(
                    inspect.Parameter(
                        name,
                        keyword
                        if name in result_names or (name in spec.attributes and not attributes_only)
                        else positional,
                        default=None,
                    )
                )
        parameters.sort(key=lambda p: (p.kind, p.default is None))
        return parameters + [inspect.Parameter(n, keyword, default=None) for n in ("loc", "ip")]

    @cached_property
    def defaults(self) -> dict[str, None]:
        """The optional parameters."""
        return {p.name: None for p in self.parameters if p.default is None}

    @cached_property
    def by_position(self) -> list[str]:
        """The parameters that may be given by position."""
        return [p.name for p in self.parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]


def _make_init(cls: type[Operation], signature: _Signature) -> Callable[..., None]:
    spec = cls.spec

    def __init__(*args: Any, **kwargs: Any) -> None:
        parameters, by_position = signature.parameters, signature.by_position
        arguments = {**signature.defaults, **dict(zip(by_position, args)), **kwargs}
        bound_names = by_position[: len(args)]
        if (
            len(args) > len(by_position)
            or len(arguments) != len(signature.parameters)
            or not kwargs.keys().isdisjoint(bound_names)
        ):
            # This raises the exception that Python would raise.
            inspect.Signature(parameters).bind(*args, **kwargs)
        d.load_dialects_in(cls.OPERATION_NAME)
        operands, values = _operands_and_attributes(cls, arguments)
        results = _result_types(cls, arguments, operands, values)
        attributes = {name: spec.attributes[name].codec.to_ir(value) for name, value in values.items()}
        ir.OpView.__init__(
            arguments["self"],
            cls.OPERATION_NAME,
            cls._ODS_REGIONS,
            cls._ODS_OPERAND_SEGMENTS,
            cls._ODS_RESULT_SEGMENTS,
            attributes=attributes,
            results=_grouped(cls._ODS_RESULT_SEGMENTS, spec.results, results),
            operands=_grouped(cls._ODS_OPERAND_SEGMENTS, spec.operands, operands),
            loc=arguments["loc"],
            ip=arguments["ip"],
        )
        broken = _CHECKED[-1] and _BROKEN_RULES.of(arguments["self"], operands, results, attributes)
        if broken:
            raise _build_error(arguments["self"], *broken)

    __init__.__doc__ = f"Build `{cls.OPERATION_NAME}`."
    return __init__


_CHECKED = [True]
"""Whether builders check the rules of ops; see `unchecked`."""


@contextmanager
def unchecked() -> Iterator[None]:
    """Let builders make ops that break rules: of a rewriting, which replaces them before it ends."""
    _CHECKED.append(False)
    try:
        yield
    finally:
        _CHECKED.pop()


class _BrokenRules(dict[Any, Broken]):
    """The rule that an op with certain types and attributes breaks. Kept for one context at a time, as by `Decoded`."""

    _context: Any = None

    def of(
        self,
        op: Operation,
        operands: Mapping[str, list[ir.Value]],
        results: Mapping[str, list[ir.Type]],
        attributes: Mapping[str, ir.Attribute],
    ) -> Broken:
        """The message and notes of the broken rule; None if the op breaks none."""
        types = [tuple([v.type for v in values]) for values in operands.values()]
        key = (op.OPERATION_NAME, *types, *map(tuple, results.values()), *attributes.items())
        try:
            return self[key]
        except KeyError:
            if op.context != self._context:
                self.clear()
                self._context = op.context
            broken = self[key] = op.broken_rule()
            return broken


_BROKEN_RULES = _BrokenRules()


def _build_error(op: Operation, message: str, notes: Sequence[str]) -> BuildError:
    """The error of an op that breaks a rule, and is erased, at its location or at the line that builds it."""
    where = position_of(op.location)
    if not where.line:
        frame = sys._getframe(2)
        while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
            frame = frame.f_back
        where = Position(frame.f_code.co_filename, frame.f_lineno)
    name = op.OPERATION_NAME
    parameters = [p for p in inspect.signature(type(op)).parameters.values() if p.name not in ("loc", "ip")]
    call = f"the builder is {name}{inspect.Signature(parameters)}"
    text = f"the op is printed as: {name} {op.assembly_format}"
    diagnostics = tuple(Diagnostic("note", note, where) for note in (*notes, call, text))
    op.operation.erase()
    return BuildError([Diagnostic("error", f"'{name}' op {message}", where, diagnostics)], sources_of([where]))


def _is_required(spec: OpSpec, name: str) -> bool:
    if name in spec.index_lists:
        return name == spec.index_lists[0]
    for group in (*spec.operands, *spec.results):
        if group.name == name:
            return group.arity != "optional"
    return name in spec.attributes and spec.attributes[name].required


def _grouped(segments: list[int] | None, groups: Sequence[ValueField], values: Mapping[str, list[Any]]) -> list[Any]:
    if segments is None:
        return [v for g in groups for v in values[g.name]]
    grouped: list[Any] = []
    for g in groups:
        listed = values[g.name]
        if g.mixed:
            grouped += [*listed, *[None] * (MIXED - len(listed))]
        else:
            grouped.append(listed if g.arity == "variadic" else next(iter(listed), None))
    return grouped


def _value(argument: Any, name: str) -> ir.Value:
    if isinstance(argument, ir.Value):
        return argument
    if isinstance(argument, (ir.OpView, ir.Operation)):
        return argument.result
    raise TypeError(f"'{name}' expects an SSA value, got {argument!r}")


def _operands_and_attributes(
    cls: type[Operation], arguments: Mapping[str, Any]
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    spec = cls.spec
    operands: dict[str, list[Any]] = {}
    attributes: dict[str, Any] = {}
    for group in spec.operands:
        argument = arguments[group.name]
        if group.name in spec.index_lists:
            entries = [] if argument is None else list(argument)
            static = tuple(e if isinstance(e, int) else d.DYNAMIC for e in entries)
            operands[group.name] = [_value(e, group.name) for e in entries if not isinstance(e, int)]
            if static:
                attributes[STATIC + group.name] = static
        elif group.arity == "variadic":
            operands[group.name] = [_value(a, group.name) for a in argument or ()]
        else:
            operands[group.name] = [] if argument is None else [_value(argument, group.name)]
            if argument is None and group.arity == "single":
                raise TypeError(f"'{group.name}' expects an SSA value, got None")
    for attribute in spec.attributes.values():
        if attribute.name in spec.order and arguments[attribute.name] is not None:
            try:
                value = attribute.codec.coerce(arguments[attribute.name])
            except (TypeError, ValueError) as e:
                raise type(e)(f"attribute '{attribute.name}' of '{cls.OPERATION_NAME}': {e}") from None
            if value != attribute.default:
                attributes[attribute.name] = value
    return operands, attributes


def _result_types(
    cls: type[Operation],
    arguments: Mapping[str, Any],
    operands: Mapping[str, list[ir.Value]],
    attributes: Mapping[str, Any],
) -> dict[str, list[ir.Type]]:
    types: dict[str, list[ir.Type]] = {}
    inferred: dict[str, str] | None = None
    for group in cls.spec.results:
        argument = arguments[group.name]
        if argument is None and group.arity == "optional":
            types[group.name] = []
            continue
        if argument is None and group.fixed is None:
            if inferred is None:
                operand_types = {k: [str(v.type) for v in vs] for k, vs in operands.items()}
                inferred = cls.infer(ParsedOp(types=operand_types, attributes=dict(attributes)))
            if group.name not in inferred:
                raise TypeError(f"'{cls.OPERATION_NAME}' requires the result type as the argument '{group.name}'")
        spelled = argument if argument is not None else group.fixed or (inferred or {})[group.name]
        listed = spelled if isinstance(spelled, (list, tuple)) else [spelled]
        types[group.name] = [_type(t, group.name) for t in listed]
    return types


def _type(argument: Any, name: str) -> ir.Type:
    if isinstance(argument, ir.Type):
        return argument
    if isinstance(argument, d.Type):
        return argument.to_ir()
    if isinstance(argument, str):
        if _PLAIN_VECTOR.match(argument):
            return ir.Type.parse(argument)
        return parse_type(argument)
    raise TypeError(f"'{name}' expects a type, got {argument!r}")


__all__ = ["Operation", "ParsedOp", "ReadOperand", "Reading", "Syntax", "VerifyError", "group_sizes"]


# The declaration of an operation class (`OpSpec`), and the parsed text of an op (`ParsedOp`).

Arity = Literal["single", "optional", "variadic"]

STATIC = "static_"

SEGMENTS = {"operand": "operandSegmentSizes", "result": "resultSegmentSizes"}
"""The attributes with the sizes of operand and result groups."""

MIXED = 32
"""The most values of a field whose values have types of their own. In IRDL those of a variadic field have one type,
so that such a field is this many optional ones."""

_ABSENT = object()


class ValueField(Struct, frozen=True):
    """An operand or result group."""

    name: str
    arity: Arity
    constraints: tuple[type[TypeConstraint], ...]
    mixed: bool = False

    @property
    def summary(self) -> str:
        """The name of its types in messages."""
        return " or ".join(c.summary for c in self.constraints)

    @property
    def fixed(self) -> str | None:
        """The type that it always has, if so."""
        return self.constraints[0].fixed if len(self.constraints) == 1 else None

    def accepts(self, text: str) -> bool:
        """Whether a type in MLIR's own spelling fulfils the constraints."""
        return any(c.accepts(text) for c in self.constraints)


def collapsed(groups: Sequence[ValueField], segments: Sequence[int]) -> list[int]:
    """The size of each group, from the sizes that MLIR holds, in which one of mixed types has `MIXED` entries."""
    sizes, start = [], 0
    for group in groups:
        stop = start + (MIXED if group.mixed else 1)
        sizes.append(sum(segments[start:stop]))
        start = stop
    return sizes if start == len(segments) else []


def expanded(groups: Sequence[ValueField], sizes: Sequence[int]) -> list[int]:
    """The sizes that MLIR holds: the reverse of `collapsed`."""
    return [
        n for group, size in zip(groups, sizes) for n in ([1] * size + [0] * (MIXED - size) if group.mixed else [size])
    ]


class AttributeField(Struct, frozen=True):
    """An attribute. A default of None means that there is none and it may be absent."""

    name: str
    codec: AttributeCodec
    required: bool
    default: Any = None


class RegionField(Struct, frozen=True):
    """A region. An optional one may have no blocks."""

    name: str
    optional: bool


class OpSpec(Struct, dict=True):
    """The declaration of an operation class: its fields by their kind."""

    operands: list[ValueField] = field(default_factory=list)
    results: list[ValueField] = field(default_factory=list)
    attributes: dict[str, AttributeField] = field(default_factory=dict)
    regions: list[RegionField] = field(default_factory=list)
    index_lists: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._segmented: dict[str, bool] = {}

    def groups(self, group_kind: str) -> list[ValueField]:
        """The groups of "operand" or of "result"."""
        return self.operands if group_kind == "operand" else self.results

    def needs_segments(self, group_kind: str) -> bool:
        """Whether the sizes of the operand or result groups cannot be told from their sum."""
        cached = self._segmented.get(group_kind)
        if cached is None:
            groups = self.groups(group_kind)
            cached = sum(g.arity != "single" for g in groups) > 1 or any(g.mixed for g in groups)
            self._segmented[group_kind] = cached
        return cached

    def sizes(self, group_kind: str, total: int, segments: Sequence[int] | None) -> list[int]:
        """The size of each operand or result group.

        Raises:
            ValueError: if `total` values cannot be divided so.
        """
        groups = self.groups(group_kind)
        if self.needs_segments(group_kind):
            sizes = collapsed(groups, segments or ())
            if len(sizes) != len(groups) or sum(sizes) != total:
                raise ValueError("segment sizes do not match the number of values")
            return sizes
        singles = [g.arity == "single" for g in groups]
        remaining = total - sum(singles)
        if remaining < 0 or (remaining and all(singles)):
            raise ValueError(f"expected {len(groups)} values, but got {total}")
        return [1 if single else remaining for single in singles]


class ParsedOp(Struct):
    """The pieces of an op as text, between two of its forms: what each named field holds.

    Attributes:
        operands: SSA names by operand field.
        types: types in MLIR's own spelling by operand or result field.
        attributes: Python values by attribute field, `None` and defaults left out.
        extra: discardable attributes as (name, text in MLIR's own spelling); None as text for a unit attribute.
        regions: where a region field's text is.
        type_offsets: where in the source a field's types stand.
    """

    operands: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    extra: list[tuple[str, str | None]] = field(default_factory=list)
    regions: dict[str, tuple[int, int]] = field(default_factory=dict)
    type_offsets: dict[str, int] = field(default_factory=dict)

    def type_of(self, name: str) -> str:
        """The one type of a field that holds a single value."""
        return self.types[name][0]


def _unwrap(annotation: Any) -> tuple[Any, Arity]:
    origin = get_origin(annotation)
    if origin in (UnionType, Union):
        alternatives_ = [a for a in get_args(annotation) if a is not type(None)]
        return alternatives_[0], "optional"
    if origin is Sequence:
        return get_args(annotation)[0], "variadic"
    return annotation, "single"


def _annotations(cls: type[Operation]) -> dict[str, tuple[type, Any]]:
    """The fields of an op, its base and its interfaces by name, in order: their class, and their annotation."""
    bases = [base for base in reversed(cls.__mro__) if issubclass(base, Operation) and base is not Operation]
    return {
        name: (owner, annotation)
        for owner in (*bases, *cls.interfaces)
        for name, annotation in inspect.get_annotations(owner, eval_str=True).items()
        if ClassVar not in (annotation, get_origin(annotation))
    }


def _codec_in(dialect: type[d.Dialect], annotation: Any) -> AttributeCodec:
    """The codec of an attribute; of an enum of the dialect's other spelling, that of the dialect's own."""
    codec = codec_of(annotation)
    if isinstance(codec, d.EnumCodec) and dialect.is_other_spelling(codec.dialect):
        return dialect.enums.get(codec.name, codec)
    return codec


def _constraints_in(dialect: type[d.Dialect], annotation: Any) -> tuple[type[TypeConstraint], ...]:
    """The types of a value; of a type of the dialect's other spelling, the dialect's own of that name."""
    return tuple(
        dialect.types[c.name] if issubclass(c, d.Type) and dialect.is_other_spelling(c.dialect) else c
        for c in alternatives(annotation)
    )


def spec_of(cls: type[Operation]) -> OpSpec:
    """The declaration in the annotations of an operation class, its base and its interfaces.

    Raises:
        TypeError: if one is neither operand, result, attribute nor region.
    """
    spec = OpSpec()
    for name, (owner, annotation) in _annotations(cls).items():
        if hasattr(ir.OpView, name) and name != "result":
            raise TypeError(f"a field of {cls.__name__} cannot be named '{name}', which every op defines")
        inner_type, arity = _unwrap(annotation)
        marker = owner.__dict__.get(name, _ABSENT)
        origin = get_origin(inner_type)
        if inner_type is IndexList:
            spec.operands.append(ValueField(name, "variadic", (Index,)))
            spec.index_lists.append(name)
            static = STATIC + name
            spec.attributes[static] = AttributeField(static, codec_of(tuple[int, ...]), False, ())
        elif inner_type is Region:
            if arity == "variadic":
                raise TypeError(f"region '{name}' of {cls.__name__} must not be variadic in an IRDL op")
            spec.regions.append(RegionField(name, arity == "optional"))
        elif origin in (Operand, Result):
            groups = spec.operands if origin is Operand else spec.results
            constraints = _constraints_in(cls.dialect_class, get_args(inner_type)[0])
            groups.append(ValueField(name, arity, constraints, name in cls.mixed))
        elif origin is Attribute:
            value = marker.value if isinstance(marker, Default) else None
            required = arity == "single" and not isinstance(marker, Default)
            spec.attributes[name] = AttributeField(
                name, _codec_in(cls.dialect_class, get_args(inner_type)[0]), required, value
            )
        else:
            raise TypeError(f"field '{name}' of {cls.__name__} must be an operand, result, attribute or region")
        spec.order.append(name)
    return spec
