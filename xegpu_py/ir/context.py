"""MLIR contexts in which our dialects are defined, and the IRDL definitions of these."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from mlir import ir

from xegpu_py.argument_types import checked
from xegpu_py.ir.bindings import load_dialects
from xegpu_py.ir.builtin import Decoded
from xegpu_py.ir.definition import Attr, Dialect, EnumCodec, Type
from xegpu_py.ir.operation import MIXED, Operation, ValueField

DIALECTS = ("xegpu", "xetile", "visa", "iree_vector_ext", "tt", "ttg")
"""Our dialects: modules of `xegpu_py.dialects`, each with a `DIALECT`."""

ON_DEMAND = ("xetile", "visa", "iree_vector_ext", "tt", "ttg")
"""Dialects that a context loads when a text names them, or on request: their import (for layouts, that of numpy) takes
as long as all else."""

VARIANTS = ("xegpu.upstream_ops",)
"""Dialects that texts name as others: see `Dialect.variant`."""

UPSTREAM = (
    "builtin", "func", "arith", "math", "index", "vector", "memref", "scf", "cf", "gpu", "affine", "ub", "irdl",
)  # fmt: skip
"""Upstream's dialects that ops may be built in at once; MLIR loads others when it meets them in a text. Its C++
`xegpu` must not be among them: that leaves the name to ours."""


def dialects(names: Sequence[str] = DIALECTS) -> tuple[type[Dialect], ...]:
    """Our dialect classes of these names."""
    return tuple(importlib.import_module(f"xegpu_py.dialects.{n}").DIALECT for n in names)


_MOST_USES = 16
"""How often the pool gives out a context: the types, attributes and locations of all texts live as long as it does."""

_POOL_SIZE = 4

_pool: list[Context] = []
"""The contexts that `Context.from_pool` may give out again, those in front first; some are still in use."""

_pool_lock = threading.Lock()


def _references(objects: Sequence[Any], i: int) -> int:
    return sys.getrefcount(objects[i])


_ONLY_IN_LIST = _references([object()], 0)
"""The references to an object that a list holds, and nothing else."""


class Context(ir.Context):  # type: ignore[misc]
    """An MLIR context with upstream's dialects and ours.

    Attributes:
        irdl_dialects: our loaded dialects. By default, those of `ON_DEMAND` are loaded when a text names them.
    """

    irdl_dialects: tuple[type[Dialect], ...]

    @checked
    def __init__(self, irdl_dialects: Sequence[type[Dialect]] | None = None) -> None:
        super().__init__(load_on_create_dialects=[])
        for name in UPSTREAM:
            # Not `self.dialects[name]`, which imports the bindings' module of the dialect too.
            self.get_dialect_descriptor(name)
        # Python passes hold the interpreter lock, so a thread pool would only add its start-up time.
        self.enable_multithreading(False)
        self.irdl_dialects = ()
        self._uses = 0
        self._defined = set[type[Dialect]]()
        self._is_open = irdl_dialects is None
        self.define(
            tuple(irdl_dialects) if irdl_dialects is not None else dialects([n for n in DIALECTS if n not in ON_DEMAND])
        )

    @classmethod
    def from_pool(cls) -> Context:
        """A context in which nothing lives: one of earlier calls to which nothing refers any more, or a new one.

        A new one takes 2 to 8 ms, for the definition of its dialects.
        """
        Decoded.forget_all()
        with _pool_lock:
            free = next((i for i in range(len(_pool)) if _references(_pool, i) == _ONLY_IN_LIST), None)
            context = cls() if free is None else _pool.pop(free)
            context._reset()
            if context._uses < _MOST_USES:
                _pool.append(context)
            del _pool[:-_POOL_SIZE]
        return context

    def _reset(self) -> None:
        """Hide what earlier uses have defined and allowed."""
        self._uses += 1
        self.allow_unregistered_dialects = False
        self.irdl_dialects = ()
        self.load([name for name in DIALECTS if name not in ON_DEMAND])

    def load(self, names: Sequence[str]) -> None:
        """Load dialects of ours."""
        self.define(dialects(names))

    def load_dialects_of(self, text: str) -> None:
        """Load the dialects that a text names, as MLIR does with its own."""
        if self._is_open:
            mentioned = [n for n in ON_DEMAND if f"{n}." in text]
            if mentioned:
                self.load(mentioned)

    def dialects_of(self, text: str) -> tuple[type[Dialect], ...]:
        """The dialects in which a text is read; those that it names are loaded."""
        self.load_dialects_of(text)
        if not self._is_open:
            return self.irdl_dialects
        spoken = []
        for dialect in [d for d in self.irdl_dialects if d.name == d.namespace]:
            other = dialect.variant(text)
            if other:
                self.load((other,))
            spoken.append(dialects((other,))[0] if other else dialect)
        return tuple(spoken)

    def define(self, dialects: tuple[type[Dialect], ...]) -> None:
        """Define dialects that are not defined yet."""
        dialects = tuple(d for d in dialects if d not in self.irdl_dialects)
        if dialects:
            self.irdl_dialects += dialects
            with self, ir.Location.unknown():
                load([d for d in dialects if d not in self._defined])
            self._defined.update(dialects)


def dialects_of(text: str) -> tuple[type[Dialect], ...]:
    """Our dialects, of which one namespace may mean another in another text."""
    context = Context.from_pool()
    context.load(DIALECTS)
    return context.dialects_of(text)


def current() -> Context:
    """The current context if it is one of ours, else a new one."""
    try:
        context = ir.Context.current
    except ValueError:
        context = None
    return context if isinstance(context, Context) else Context.from_pool()


# The IRDL definition of a dialect: as much of its constraints as IRDL can hold.


class _Body:
    """The constraint operations of one definition."""

    def __init__(self, words: bool = True) -> None:
        self.words = words
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


def dump(dialect: type[Dialect], *, words: bool = True) -> str:
    """The dialect's definition as IRDL text, which stock `mlir-opt --irdl-file` loads too.

    Args:
        words: whether it lists the words and numbers that an op's attribute may have.
    """
    out = [f"irdl.dialect @{dialect.name} {{"]
    for enum in dialect.enums.values():
        out += _definition("attribute", enum.name, _enum(enum))
    for attr in dict.fromkeys(dialect.attributes.values()):
        out += _definition("attribute", attr.name, _parameters(attr))
    for cls in dict.fromkeys(dialect.types.values()):
        out += _definition("type", cls.name, _parameters(cls))
    for op in dict.fromkeys(dialect.operations.values()):
        out += _definition("operation", op.OPERATION_NAME.partition(".")[2], _operation(op, words))
    return "\n".join([*out, "}", ""])


_DEFINITIONS: dict[type[Dialect], str | bytes] = {}
"""The text that a context reads to define a dialect; after the second time bytecode, which is read in half the time."""


def load(dialects: Sequence[type[Dialect]]) -> None:
    """Define the dialects in the current context."""
    for dialect in dialects:
        dialect.declare()
        known = _DEFINITIONS.get(dialect)
        # `verify` checks words. To read those of visa would take as long as all else.
        definition = dump(dialect, words=False) if known is None else known
        module = ir.Module.parse(definition)
        load_dialects(module)
        if isinstance(known, str):
            module.operation.write_bytecode(buffer := BytesIO())
            definition = buffer.getvalue()
        _DEFINITIONS[dialect] = definition


def _definition(declaration: str, name: str, body: list[str]) -> list[str]:
    return [f"  irdl.{declaration} @{name} {{", *(f"    {line}" for line in body), "  }"]


def _enum(enum: EnumCodec) -> list[str]:
    body = _Body()
    enumerator = body.any_of([body.constraint(f'irdl.is "{c.value}"') for c in enum.cases])
    return [*body.lines, f"irdl.parameters(value: {enumerator})"]


def _parameters(cls: type[Type] | type[Attr]) -> list[str]:
    body = _Body()
    listed = [f"{name}: {codec.irdl(body)}" for name, codec in cls.parameters().items()]
    return [*body.lines, f"irdl.parameters({', '.join(listed)})"] if listed else []


def _operation(op: type[Operation], words: bool) -> list[str]:
    body, spec = _Body(words), op.spec
    operands = [text for f in spec.operands for text in _values(body, f)]
    results = [text for f in spec.results for text in _values(body, f)]
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


def _values(body: _Body, field: ValueField) -> list[str]:
    if field.mixed:
        # All uses of one constraint would have one type.
        ones = [ValueField(f"{field.name}_{i}", "optional", field.constraints) for i in range(MIXED)]
        return [text for one in ones for text in _values(body, one)]
    constraint = body.any_of([c.irdl(body) for c in field.constraints])
    arity = "" if field.arity == "single" else field.arity + " "
    return [f"{field.name}: {arity}{constraint}"]
