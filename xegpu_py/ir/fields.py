"""The declaration of an operation class (`OpSpec`), and the parsed text of an op (`ParsedOp`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from mlir import ir
from msgspec import Struct, field

from xegpu_py.ir.codecs import AttributeCodec, codec_of
from xegpu_py.ir.constraints import Index, TypeConstraint, alternatives
from xegpu_py.ir.definition import Attribute, Default, IndexList, Interface, Operand, Region, Result

Arity = Literal["single", "optional", "variadic"]

STATIC = "static_"

SEGMENTS = {"operand": "operandSegmentSizes", "result": "resultSegmentSizes"}
"""The attributes with the sizes of operand and result groups."""

_ABSENT = object()


class ValueField(Struct, frozen=True):
    """An operand or result group."""

    name: str
    arity: Arity
    constraints: tuple[type[TypeConstraint], ...]

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

    def groups(self, which: str) -> list[ValueField]:
        """The groups of "operand" or of "result"."""
        return self.operands if which == "operand" else self.results

    def needs_segments(self, which: str) -> bool:
        """Whether the sizes of the operand or result groups cannot be told from their sum."""
        found = self._segmented.get(which)
        if found is None:
            found = self._segmented[which] = sum(g.arity != "single" for g in self.groups(which)) > 1
        return found

    def sizes(self, which: str, total: int, segments: Sequence[int] | None) -> list[int]:
        """The size of each operand or result group.

        Raises:
            ValueError: if `total` values cannot be divided so.
        """
        groups = self.groups(which)
        if self.needs_segments(which):
            if segments is None or len(segments) != len(groups) or sum(segments) != total:
                raise ValueError("segment sizes do not match the number of values")
            return list(segments)
        singles = [g.arity == "single" for g in groups]
        rest = total - sum(singles)
        if rest < 0 or (rest and all(singles)):
            raise ValueError(f"expected {len(groups)} values, but got {total}")
        return [1 if single else rest for single in singles]


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
        inner = [a for a in get_args(annotation) if a is not type(None)]
        return inner[0], "optional"
    if origin is Sequence:
        return get_args(annotation)[0], "variadic"
    return annotation, "single"


def _annotations(*classes: type) -> Iterator[tuple[type, str, Any]]:
    for cls in classes:
        for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
            yield cls, name, annotation


def spec_of(cls: type, interfaces: Sequence[type[Interface]] = ()) -> OpSpec:
    """The declaration in the annotations of an operation class and of its interfaces.

    Raises:
        TypeError: if one is neither operand, result, attribute nor region.
    """
    spec = OpSpec()
    for owner, name, annotation in _annotations(cls, *interfaces):
        if ClassVar in (annotation, get_origin(annotation)):
            continue
        if hasattr(ir.OpView, name) and name != "result":
            raise TypeError(f"a field of {cls.__name__} cannot be named '{name}', which every op defines")
        inner, arity = _unwrap(annotation)
        marker = owner.__dict__.get(name, _ABSENT)
        origin = get_origin(inner)
        if inner is IndexList:
            spec.operands.append(ValueField(name, "variadic", (Index,)))
            spec.index_lists.append(name)
            static = STATIC + name
            spec.attributes[static] = AttributeField(static, codec_of(tuple[int, ...]), False, ())
        elif inner is Region:
            if arity == "variadic":
                raise TypeError(f"region '{name}' of {cls.__name__} must not be variadic in an IRDL op")
            spec.regions.append(RegionField(name, arity == "optional"))
        elif origin in (Operand, Result):
            groups = spec.operands if origin is Operand else spec.results
            groups.append(ValueField(name, arity, alternatives(get_args(inner)[0])))
        elif origin is Attribute:
            value = marker.value if isinstance(marker, Default) else None
            required = arity == "single" and not isinstance(marker, Default)
            spec.attributes[name] = AttributeField(name, codec_of(get_args(inner)[0]), required, value)
        else:
            raise TypeError(f"field '{name}' of {cls.__name__} must be an operand, result, attribute or region")
        spec.order.append(name)
    return spec
