"""Vectors of indices as polynomials: of scalars of the kernel, and linear in each dimension of the vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xetile import BroadcastOp, TransposeOp
from xegpu_py.ir.builtin import integer_elements
from xegpu_py.ir.control_flow import dominates, yielded
from xegpu_py.ir.element_movement import VIEWS, groups, view_of
from xegpu_py.passes.analysis.divisibility import divisor
from xegpu_py.passes.analysis.integer_ranges import INDEX_BITS, Limits, Ranges, full
from xegpu_py.passes.analysis.ir_queries import (
    argument_number,
    attributes_of,
    block_of,
    constant_of,
    defining_op,
    element_of,
    is_vector,
    sees,
    shape_of,
    splat_of,
)
from xegpu_py.passes.rewriting.builders import PREDICATES, Index, add, create, index, index_type, multiply

# Polynomials of scalars. Each product of scalars is a sorted tuple of their numbers in an `IndexForms`.

Monomial = tuple[int, ...]

Polynomial = Mapping[Monomial, int]
"""The integer factor of each product of scalars; no factor is 0."""

ZERO: Polynomial = {}


def constant(number: int) -> Polynomial:
    """A constant polynomial."""
    return {(): number} if number else ZERO


def single(scalar: int) -> Polynomial:
    """The polynomial that is a scalar."""
    return {(scalar,): 1}


def constant_part(p: Polynomial) -> int | None:
    """The number that a polynomial is; None if it depends on scalars."""
    return p.get((), 0) if all(m == () for m in p) else None


def plus(a: Polynomial, b: Polynomial, times: int = 1) -> Polynomial:
    """`a + times * b`."""
    found = {m: a.get(m, 0) + times * b.get(m, 0) for m in {**a, **b}}
    return {m: n for m, n in found.items() if n}


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a * b`."""
    found: dict[Monomial, int] = {}
    for m, x in a.items():
        for n, y in b.items():
            both = tuple(sorted((*m, *n)))
            found[both] = found.get(both, 0) + x * y
    return {m: n for m, n in found.items() if n}


def divided(p: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The quotient of the terms that a polynomial of one term divides, and the other terms."""
    ((scalars, factor),) = by.items()
    quotient, rest = {}, {}
    for m, n in p.items():
        left = list(m)
        for scalar in scalars:
            if scalar not in left:
                break
            left.remove(scalar)
        else:
            if n % factor == 0:
                quotient[tuple(left)] = n // factor
                continue
        rest[m] = n
    return quotient, rest


class IndexForm(Struct, frozen=True):
    """The elements of an integer vector, or a scalar: `start` plus `steps` times the position in each dimension."""

    shape: tuple[int, ...]
    start: Polynomial
    steps: tuple[Polynomial, ...]

    def plus(self, other: IndexForm, times: int = 1) -> IndexForm:
        """The sum with a multiple of a form of the same shape."""
        steps = tuple(plus(a, b, times) for a, b in zip(self.steps, other.steps))
        return IndexForm(self.shape, plus(self.start, other.start, times), steps)

    def times(self, p: Polynomial) -> IndexForm:
        """The product with a scalar."""
        return IndexForm(self.shape, product(self.start, p), tuple(product(s, p) for s in self.steps))

    @property
    def is_splat(self) -> bool:
        """Whether all elements are equal."""
        return not any(s for s, n in zip(self.steps, self.shape) if n > 1)

    def step_of(self, dims: Sequence[int]) -> Polynomial | None:
        """The distance of neighbours if some dimensions are collapsed into one; None if it is not the same for all."""
        found: Polynomial | None = None
        size = 1
        for d in reversed(dims):
            if self.shape[d] == 1:
                continue
            if found is None:
                found = self.steps[d]
            elif self.steps[d] != product(found, constant(size)):
                return None
            size *= self.shape[d]
        return ZERO if found is None else found


_SIGNED_CASTS = ("arith.index_cast", "arith.extsi")

_QUOTIENTS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")

_IDS = ("gpu.block_id", "gpu.grid_dim", "memref.dim", "arith.extui", "arith.index_castui")


class IndexForms:
    """The forms of a kernel's integers.

    Integers of 64 bits count as if they did not overflow: the index of an element in memory is no index after an
    overflow. Narrower ones wrap around: what is computed of them, or converted to them, and may not fit, is a scalar of
    its own.

    Attributes:
        scalars: by its number the values that a scalar is, in the order in which they were met.
        assumed: by the number of a scalar that is a remainder, the divisor that is assumed to be a positive multiple,
            and of what; None for one that is known to be.
    """

    def __init__(self, unwraps: bool = False) -> None:
        """Begin without forms; `unwraps` says whether all that are used will be `unwrapped`."""
        self._unwraps = unwraps
        self.scalars: list[dict[ir.Value, None]] = []
        self.assumed: dict[int, tuple[ir.Value | None, int]] = {}
        self._numbers: dict[object, int] = {}
        self._forms: dict[ir.Value, IndexForm | None] = {}
        self._ranges: Ranges | None = None
        self._wide: dict[int, Polynomial] = {}
        # For the scalar of a loop's counter, the scalars that must fit because the loop's step is a factor of them.
        self._fits: dict[int, set[int]] = {}

    def of(self, value: ir.Value) -> IndexForm | None:
        """The form of an integer or of a vector of integers; None if it has none."""
        if value not in self._forms:
            self._forms[value] = self._vector(value) if is_vector(value) else self._scalar(value)
        return self._forms[value]

    def scalar(self, value: ir.Value | int) -> Polynomial:
        """The polynomial that a scalar is."""
        if isinstance(value, int):
            return constant(value)
        found = self.of(value)
        assert found is not None
        return found.start

    def _scalar(self, value: ir.Value) -> IndexForm:
        known = constant_of(value)
        if known is not None:
            return IndexForm((), constant(known), ())
        op, found = defining_op(value), None
        if op is None:
            found = self._carried(value)
        elif op.name in _SIGNED_CASTS:
            found = IndexForm((), self.scalar(op.operands[0]), ())
        elif op.name in _ARITHMETIC and _floored(op) is None:
            found = _ARITHMETIC[op.name](*(IndexForm((), self.scalar(v), ()) for v in op.operands))
        if found is None or not self._wraps(value):
            return found or self._atom(value)
        atom = self._atom(value)
        if self._unwraps and element_of(value).width >= 32 and self.of_arguments(self.unwrapped(found.start)):
            ((scalar,),) = atom.start
            self._wide[scalar] = found.start
        return atom

    def unwrapped(self, p: Polynomial, fits: set[int] | None = None) -> Polynomial:
        """A polynomial in which integers of 32 bits that are computed of arguments are what they are without overflow.

        Args:
            fits: gets their scalars.
        """
        found: Polynomial = ZERO
        for m, n in p.items():
            term = constant(n)
            for scalar in m:
                if fits is not None:
                    fits |= {scalar} & self._wide.keys() | self._fits.get(scalar, set())
                wide = self._wide.get(scalar)
                term = product(term, single(scalar) if wide is None else self.unwrapped(wide, fits))
            found = plus(found, term)
        return found

    def _wraps(self, value: ir.Value) -> bool:
        """Whether numbers of a value may have wrapped around."""
        element = element_of(value)
        if not isinstance(element, ir.IntegerType) or element.width >= INDEX_BITS:
            return False
        if self._ranges is None:
            block = block_of(value)
            while (op := block.owner.operation).name not in ("gpu.func", "func.func"):
                block = op.block
            self._ranges = Ranges(op, Limits())
        return self._ranges.of(value) == full(element.width)

    def without_overflow(self, form: IndexForm, fits: set[int]) -> IndexForm:
        """A form whose polynomials are `unwrapped`."""
        steps = tuple(self.unwrapped(s, fits) for s in form.steps)
        return IndexForm(form.shape, self.unwrapped(form.start, fits), steps)

    def _atom(self, value: ir.Value) -> IndexForm:
        key = self._key(value)
        number = self._numbers.setdefault(key, len(self.scalars))
        if number == len(self.scalars):
            self.scalars.append({})
        self.scalars[number][value] = None
        return IndexForm((), single(number), ())

    def at(self, scalar: int, op: ir.Operation) -> ir.Value | None:
        """The value of a scalar that ops at the place of an op can use; None if there is none."""
        for value in self.scalars[scalar]:
            maker = defining_op(value)
            if sees(op, value) if maker is None else dominates(maker, op):
                return value
        return None

    def first(self, scalar: int) -> ir.Value:
        """The first value that a scalar is."""
        return next(iter(self.scalars[scalar]))

    def _key(self, value: ir.Value) -> object:
        """Equal for scalars that equal ops compute of equal scalars."""
        op = defining_op(value)
        if op is None or (not op.name.startswith("arith.") and op.name not in _IDS):
            return value
        operands = [v if isinstance(v.type, ir.MemRefType) else tuple(self.scalar(v).items()) for v in op.operands]
        return (op.name, *map(str, attributes_of(op).items()), str(value.type), *operands)

    def _vector(self, value: ir.Value) -> IndexForm | None:
        op, shape = defining_op(value), shape_of(value)
        still = (ZERO,) * len(shape)
        if self._wraps(value) and (op is None or op.name in (*_SIGNED_CASTS, *_REMAINDERS, *_ARITHMETIC)):
            return None
        if op is None:
            return self._carried(value)
        if op.name == "arith.constant":
            return _of_numbers(op.attributes["value"], shape)
        if op.name == "vector.step":
            return IndexForm(shape, ZERO, (constant(1),))
        if op.name == "vector.broadcast" and not is_vector(op.operands[0]):
            return IndexForm(shape, self.scalar(op.operands[0]), still)
        if op.name in _SIGNED_CASTS:
            return self.of(op.operands[0])
        if op.name in _REMAINDERS:
            return self._remainder(op)
        if op.name in _ARITHMETIC:
            floored = _floored(op)
            if floored is not None:
                return self.of(floored)
            a, b = (self.of(v) for v in op.operands)
            return _ARITHMETIC[op.name](a, b) if a is not None and b is not None else None
        source = self.of(op.operands[0]) if is_moved(op) else None
        return None if source is None else moved(op, source)

    def _remainder(self, op: ir.Operation) -> IndexForm | None:
        """The form of positions modulo a number: the first one's remainder, and those that follow it.

        None follows over the number if that and the first position are multiples of how many there are. For a number
        that a call gives this is assumed.
        """
        positions, by = self.of(op.operands[0]), self.of(_unguarded(op.operands[1]))
        if positions is None or by is None or not by.is_splat or not is_vector(op.operands[0]):
            return None
        moving = [d for d, s in enumerate(positions.steps) if s]
        if len(moving) != 1 or constant_part(positions.steps[moving[0]]) != 1:
            return None
        count, known = positions.shape[moving[0]], constant_part(by.start)
        if self.divisor(positions.start) % count or not self.is_natural(positions.start):
            return None
        if (known is None and not (len(by.start) == 1 and self.of_arguments(by.start))) or (known or count) % count:
            return None
        if (known is not None and known < 1) or (known is None and [*by.start.values()] != [1]):
            return None
        if any(self.at(s, op) is None for p in (positions.start, by.start) for m in p for s in m):
            return None
        with ir.InsertionPoint(op), op.location:
            operands = [index(self.build(p, op)) for p in (positions.start, by.start)]
            first = create("arith.remsi", [index_type()], operands).results[0]
        ((scalar,),) = self._atom(first).start
        self.assumed[scalar] = (None if known is not None else self.first(next(iter(by.start))[0]), count)
        return IndexForm(positions.shape, single(scalar), positions.steps)

    def _carried(self, value: ir.Value) -> IndexForm | None:
        """The form of what a loop carries, if each iteration adds the same number to all elements."""
        number = argument_number(value, "scf.for")
        if not number:
            return None
        block = ir.BlockArgument(value).owner
        loop = block.owner.operation
        first, _, step = list(loop.operands)[:3]
        before = self.of(loop.operands[2 + number])
        stride = constant_of(step)
        if before is None or stride is None:
            return None
        # In the body, the value at the begin of an iteration is a scalar of its own.
        known = dict(self._forms)
        own = self._atom(value).start
        self._forms[value] = IndexForm(before.shape, own, (ZERO,) * len(before.shape))
        after = self.of(yielded(block)[number - 1])
        self._forms = known
        if after is None or not after.is_splat:
            return None
        by, fits = plus(after.start, own, -1), set[int]()
        if any(n % stride for n in by.values()):
            by = self.unwrapped(by, fits)
        if any(n % stride for n in by.values()) or any(self._inside(s, block) for m in by for s in m):
            return None
        counter = self.scalar(block.arguments[0])
        ((scalar,),) = counter
        self._fits.setdefault(scalar, set()).update(fits)
        passed = plus(counter, self.scalar(first), -1)
        moves = product(passed, {m: n // stride for m, n in by.items()})
        return before.plus(IndexForm(before.shape, moves, (ZERO,) * len(before.shape)))

    def _inside(self, number: int, block: ir.Block) -> bool:
        """Whether a scalar is defined in the body of a loop, or is computed of one that is."""
        if number in self._wide:
            return any(self._inside(s, block) for m in self._wide[number] for s in m)
        at: ir.Block | None = block_of(self.first(number))
        while at is not None and at != block:
            parent = at.owner.operation if at.owner is not None else None
            at = parent.block if parent is not None and parent.name != "gpu.func" else None
        return at is not None

    def build(self, p: Polynomial, op: ir.Operation, made: Mapping[ir.Value, ir.Value] | None = None) -> Index:
        """Build the index that a polynomial is, for an op of the block in which ops are inserted.

        Args:
            made: the values that have replaced others.
        """
        terms: list[Index] = []
        for m, n in p.items():
            term: Index = n
            for scalar in m:
                value = self.at(scalar, op)
                assert value is not None
                value = made.get(value, value) if made else value
                if not isinstance(value.type, ir.IndexType):
                    value = create("arith.index_cast", [index_type()], [value]).results[0]
                term = multiply(term, value)
            terms.append(term)
        return add(*terms) if terms else 0

    def divisor(self, p: Polynomial) -> int:
        """The largest power of two that is known to divide a polynomial; 0 if it is 0."""
        return math.gcd(*(math.prod((n, *map(self._divisor, m))) for m, n in p.items()))

    def _divisor(self, scalar: int) -> int:
        return self.assumed[scalar][1] if scalar in self.assumed else divisor(self.first(scalar))

    def is_natural(self, p: Polynomial) -> bool:
        """Whether a polynomial is not negative, if the sizes by which positions are divided are not."""
        return all(n > 0 and all(self._natural(self.first(s)) for s in m) for m, n in p.items())

    def _natural(self, value: ir.Value) -> bool:
        op = defining_op(value)
        if op is None:
            loop = ir.BlockArgument(value).owner.owner.operation
            counts = argument_number(value, "scf.for") == 0 and "unsignedCmp" not in loop.attributes
            return counts and self.is_natural(self.scalar(loop.operands[0]))
        inner = _floored(op) or _guarded_quotient(op)
        if inner is not None:
            return self._natural(inner)
        if op.name in _QUOTIENTS:
            return self.is_natural(self.scalar(op.operands[0]))
        if op.name == "arith.maxsi":
            return any(self.is_natural(self.scalar(v)) for v in op.operands)
        return op.name in _IDS or op.name.startswith("gpu.")

    def of_arguments(self, p: Polynomial) -> bool:
        """Whether a polynomial depends only on numbers and extents that a call of the kernel knows."""
        return all(_is_argument(self.first(s)) for m in p for s in m)


_REMAINDERS = ("arith.remsi", "arith.remui")


def _unguarded(number: ir.Value) -> ir.Value:
    """A divisor, without the 1 that is selected in place of 0 and -1; see `_floored`."""
    op = defining_op(number)
    if op is None or op.name != "arith.select":
        return number
    test, one, other = op.operands
    compared = defining_op(test)
    if compared is None or compared.name != "arith.cmpi" or _number_of(one) != 1 or _predicate(compared) != "ule":
        return number
    sum_, limit = compared.operands
    added = defining_op(sum_)
    if added is None or added.name != "arith.addi" or added.operands[0] != other:
        return number
    return other if _number_of(added.operands[1]) == _number_of(limit) == 1 else number


def _floored(op: ir.Operation) -> ir.Value | None:
    """The remainder of a division that truncates, of one that rounds down; None for other ops.

    The latter is the former, plus the divisor where the two have different signs, as the tile language builds it.
    """
    if op.name != "arith.addi":
        return None
    first, second = (defining_op(v) for v in op.operands)
    if first is None or second is None or first.name != "arith.remsi" or second.name != "arith.muli":
        return None
    both = _uncast(second.operands[0])
    if second.operands[1] != first.operands[1] or both is None or both.name != "arith.andi":
        return None
    negative = defining_op(both.operands[0])
    if negative is None or negative.name != "arith.cmpi" or _predicate(negative) != "slt":
        return None
    unlike = defining_op(negative.operands[0])
    if unlike is None or unlike.name != "arith.xori" or _number_of(negative.operands[1]) != 0:
        return None
    return op.operands[0] if [*unlike.operands] == [first.results[0], first.operands[1]] else None


def _guarded_quotient(op: ir.Operation) -> ir.Value | None:
    """The quotient of a division by what is not 0 or -1, for which the dividend, negated or 0, is selected instead."""
    if op.name != "arith.select":
        return None
    instead, quotient = (defining_op(v) for v in list(op.operands)[1:])
    if instead is None or quotient is None or quotient.name not in _QUOTIENTS or instead.name != "arith.andi":
        return None
    negated = defining_op(instead.operands[0])
    if negated is None or negated.name != "arith.subi" or _number_of(negated.operands[0]) != 0:
        return None
    return op.operands[2] if negated.operands[1] == quotient.operands[0] else None


def _uncast(value: ir.Value) -> ir.Operation | None:
    op = defining_op(value)
    while op is not None and op.name in (*_SIGNED_CASTS, "arith.extui"):
        op = defining_op(op.operands[0])
    return op


def _number_of(value: ir.Value) -> int | None:
    """The constant integer that all elements of a value are."""
    known = splat_of(value) if is_vector(value) else None
    return constant_of(value) if known is None else int(ir.IntegerAttr(known).value)


def _predicate(compared: ir.Operation) -> str:
    return PREDICATES[ir.IntegerAttr(compared.attributes["predicate"]).value]


def _is_argument(value: ir.Value) -> bool:
    op = defining_op(value)
    if op is None:
        return argument_number(value, "gpu.func") is not None
    return op.name == "memref.dim" and _is_argument(op.operands[0])


def _product(a: IndexForm, b: IndexForm) -> IndexForm | None:
    return a.times(b.start) if b.is_splat else b.times(a.start) if a.is_splat else None


_ARITHMETIC: dict[str, Callable[[IndexForm, IndexForm], IndexForm | None]] = {
    "arith.addi": IndexForm.plus,
    "arith.subi": lambda a, b: a.plus(b, -1),
    "arith.muli": _product,
}


def _of_numbers(attr: ir.Attribute, shape: tuple[int, ...]) -> IndexForm | None:
    """The form of a vector of constants; None if these have none."""
    if isinstance(attr, ir.DenseElementsAttr) and attr.is_splat:
        number = int(ir.IntegerAttr(attr.get_splat_value()).value)
        return IndexForm(shape, constant(number), (ZERO,) * len(shape))
    if not isinstance(attr, ir.DenseIntElementsAttr):
        return None
    numbers = np.array(integer_elements(attr), dtype=object).reshape(shape)
    first = numbers[(0,) * len(shape)]
    units = [tuple(int(i == d) for i in range(len(shape))) for d in range(len(shape))]
    steps = [int(numbers[u] - first) if n > 1 else 0 for u, n in zip(units, shape)]
    expected = first + sum(s * i for s, i in zip(steps, np.indices(shape).astype(object)))
    return IndexForm(shape, constant(int(first)), tuple(map(constant, steps))) if (numbers == expected).all() else None


# Ops that move elements.


def is_moved(op: ir.Operation) -> bool:
    """Whether `moved` knows the op."""
    return op.name in VIEWS or op.name == "vector.shape_cast" or isinstance(op.opview, (BroadcastOp, TransposeOp))


def moved(op: ir.Operation, found: IndexForm) -> IndexForm | None:
    """The form of the result of an op that moves elements, from that of its operand."""
    shape, view = shape_of(op.results[0]), op.opview
    if isinstance(view, BroadcastOp):
        if view.broadcast_size is not None:
            return None
        return IndexForm(shape, found.start, tuple(ZERO if d in view.dims else s for d, s in enumerate(found.steps)))
    if isinstance(view, TransposeOp):
        return IndexForm(shape, found.start, tuple(found.steps[d] for d in view.permutation))
    if op.name == "vector.shape_cast":
        return _reshaped(found, shape)
    seen = view_of(op)
    if seen is None:
        return None
    start, along = found.start, dict(zip(seen.dims, found.steps))
    for step, first in zip(found.steps, seen.first):
        start = plus(start, step, first)
    return IndexForm(shape, start, tuple(along.get(d, ZERO) for d in range(len(shape))))


def _reshaped(found: IndexForm, shape: tuple[int, ...]) -> IndexForm | None:
    steps: list[Polynomial] = []
    for left, right in groups(found.shape, shape) or ():
        step = found.step_of(left)
        if step is None:
            return None
        steps += [product(step, constant(math.prod(shape[d + 1 : right.stop]))) for d in right]
    return IndexForm(shape, found.start, tuple(steps))


# Masks: what the elements that they select have in common.

_ORDERS = {"slt": (1, 0), "sle": (1, 1), "sgt": (-1, 0), "sge": (-1, 1)}
"""Of a comparison of `a` and `b`: the sign of `b - a`, and what is to be added to it for a number above 0."""


def conditions(forms: IndexForms, mask: ir.Value) -> Iterator[IndexForm | None]:
    """The forms that are above 0 where a mask is set, and only there; None for a condition that has no form."""
    op = defining_op(mask)
    if op is None:
        yield None
    elif op.name == "arith.andi":
        for value in op.operands:
            yield from conditions(forms, value)
    elif op.name == "arith.constant":
        number = splat_of(mask)
        if number is None or not ir.BoolAttr(number).value:
            yield None
    elif op.name == "arith.cmpi":
        yield _compared(forms, op)
    elif op.name == "vector.create_mask":
        shape = shape_of(mask)
        for d, bound in enumerate(op.operands):
            steps = tuple(constant(-1 if d == i else 0) for i in range(len(shape)))
            yield IndexForm(shape, forms.scalar(bound), steps)
    elif is_moved(op) and is_vector(op.operands[0]):
        for form in conditions(forms, op.operands[0]):
            yield None if form is None else moved(op, form)
    else:
        yield None


def _compared(forms: IndexForms, op: ir.Operation) -> IndexForm | None:
    order = _ORDERS.get(_predicate(op))
    a, b = (forms.of(v) if is_vector(v) else None for v in op.operands)
    if order is None or a is None or b is None:
        return None
    sign, more = order
    found = b.plus(a, -1) if sign > 0 else a.plus(b, -1)
    return IndexForm(found.shape, plus(found.start, constant(more)), found.steps)
