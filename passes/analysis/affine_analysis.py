"""Vectors of indices as polynomials: of scalars of the kernel, and linear in each dimension of the vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.ir.builtin import integer_elements
from xegpu_py.ir.control_flow import dominates, yielded
from xegpu_py.ir.element_movement import VIEWS, groups, view_of
from xegpu_py.passes.analysis.integer_analysis import INDEX_BITS, Integers, type_range
from xegpu_py.passes.analysis.ir_queries import (
    argument_number,
    attributes_of,
    block_of,
    constant_of,
    defining_op,
    element_of,
    is_made_of_arguments,
    is_vector,
    sees,
    shape_of,
    splat_of,
    view_numbers,
)
from xegpu_py.passes.analysis.launch_assumptions import is_assumed_positive
from xegpu_py.passes.rewriting.builders import PREDICATES, Index, add, create, index, index_type, multiply

# Polynomials of scalars. Each product of scalars is a sorted tuple of their numbers in an `IndexForms`.

Monomial = tuple[int, ...]

Polynomial = Mapping[Monomial, int]
"""The integer factor of each product of scalars; no factor is 0."""

ZERO: Polynomial = {}


def constant(number: int) -> Polynomial:
    """A constant polynomial."""
    return {(): number} if number else ZERO


def scalar_polynomial(scalar: int) -> Polynomial:
    """The polynomial that is a scalar."""
    return {(scalar,): 1}


def constant_part(p: Polynomial) -> int | None:
    """The number that a polynomial is; None if it depends on scalars."""
    return p.get((), 0) if all(m == () for m in p) else None


def plus(a: Polynomial, b: Polynomial, times: int = 1) -> Polynomial:
    """`a + times * b`."""
    terms = {m: a.get(m, 0) + times * b.get(m, 0) for m in {**a, **b}}
    return {m: n for m, n in terms.items() if n}


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a * b`."""
    terms: dict[Monomial, int] = {}
    for m, x in a.items():
        for n, y in b.items():
            both = tuple(sorted((*m, *n)))
            terms[both] = terms.get(both, 0) + x * y
    return {m: n for m, n in terms.items() if n}


def divide_polynomial(p: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The quotient of the terms that a polynomial of one term divides, and the other terms."""
    ((scalars, factor),) = by.items()
    quotient, rest = {}, {}
    for m, n in p.items():
        scalars_left = list(m)
        for scalar in scalars:
            if scalar not in scalars_left:
                break
            scalars_left.remove(scalar)
        else:
            if n % factor == 0:
                quotient[tuple(scalars_left)] = n // factor
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
        step: Polynomial | None = None
        size = 1
        for d in reversed(dims):
            if self.shape[d] == 1:
                continue
            if step is None:
                step = self.steps[d]
            elif self.steps[d] != product(step, constant(size)):
                return None
            size *= self.shape[d]
        return ZERO if step is None else step


_SIGNED_CASTS = ("arith.index_cast", "arith.extsi")

_QUOTIENTS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")

_OPAQUE_OPS = ("gpu.block_id", "gpu.grid_dim", "memref.dim", "arith.extui", "arith.index_castui")


class IndexForms:
    """The forms of a kernel's integers.

    Integers of 64 bits are assumed not to overflow: after an overflow, no index of an element in memory is valid.
    Narrower integers wrap around. A result of their arithmetic or of a conversion to them that may not fit becomes an
    opaque scalar.

    Attributes:
        scalars: the values that equal each scalar, by the scalar's number, in program order.
        assumed: for the number of a scalar that is a remainder, the divisor, the number whose positive multiple it is
            assumed to be, and the scalars of arguments that are assumed to be positive. The divisor is None if it is
            known.
    """

    def __init__(self, unwraps: bool = False, through_loops: bool = True) -> None:
        """Create an empty analysis.

        Args:
            unwraps: whether all forms that are used will be `unwrapped`.
            through_loops: whether values that loops carry have forms: not while a pass adds arguments to loops.
        """
        self._unwraps, self._through_loops = unwraps, through_loops
        self.scalars: list[dict[ir.Value, None]] = []
        self.assumed: dict[int, tuple[ir.Value | None, int, frozenset[int]]] = {}
        self._numbers: dict[object, int] = {}
        self._forms: dict[ir.Value, IndexForm | None] = {}
        self._integers = Integers()
        self._unwrapped_forms: dict[int, Polynomial] = {}
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
        form = self.of(value)
        assert form is not None
        return form.start

    def _scalar(self, value: ir.Value) -> IndexForm:
        number = constant_of(value)
        if number is not None:
            return IndexForm((), constant(number), ())
        op, form = defining_op(value), None
        if op is None:
            form = self._loop_carried_form(value)
        elif op.name in _SIGNED_CASTS:
            form = IndexForm((), self.scalar(op.operands[0]), ())
        elif op.name == "memref.dim":
            extent = _stated_extent(op)
            form = None if extent is None else IndexForm((), self.scalar(extent), ())
        elif op.name in _FORM_ARITHMETIC and _floored_remainder(op) is None:
            form = _FORM_ARITHMETIC[op.name](*(IndexForm((), self.scalar(v), ()) for v in op.operands))
        if form is None or not self._wraps(value):
            return form or self._opaque_scalar(value)
        atom = self._opaque_scalar(value)
        if self._unwraps and element_of(value).width >= 32 and self.depends_on_arguments(self.unwrapped(form.start)):
            ((scalar,),) = atom.start
            self._unwrapped_forms[scalar] = form.start
        return atom

    def unwrapped(self, p: Polynomial, fits: set[int] | None = None) -> Polynomial:
        """Replace scalars of 32 bits that are computed from arguments by their polynomials without overflow.

        Args:
            fits: receives the numbers of these scalars, which must fit 32 bits.
        """
        result: Polynomial = ZERO
        for m, n in p.items():
            term = constant(n)
            for scalar in m:
                if fits is not None:
                    fits |= {scalar} & self._unwrapped_forms.keys() | self._fits.get(scalar, set())
                wide = self._unwrapped_forms.get(scalar)
                term = product(term, scalar_polynomial(scalar) if wide is None else self.unwrapped(wide, fits))
            result = plus(result, term)
        return result

    def _wraps(self, value: ir.Value) -> bool:
        """Return whether numbers of a value may have wrapped around."""
        element = element_of(value)
        if not isinstance(element, ir.IntegerType) or element.width >= INDEX_BITS:
            return False
        return self._integers.bounds(value) == type_range(element.width)

    def without_overflow(self, form: IndexForm, fits: set[int]) -> IndexForm:
        """A form whose polynomials are `unwrapped`."""
        steps = tuple(self.unwrapped(s, fits) for s in form.steps)
        return IndexForm(form.shape, self.unwrapped(form.start, fits), steps)

    def _opaque_scalar(self, value: ir.Value) -> IndexForm:
        key = self._key(value)
        number = self._numbers.setdefault(key, len(self.scalars))
        if number == len(self.scalars):
            self.scalars.append({})
        self.scalars[number][value] = None
        return IndexForm((), scalar_polynomial(number), ())

    def dominating_value(self, scalar: int, op: ir.Operation) -> ir.Value | None:
        """The value of a scalar whose definition dominates an op; None if there is none."""
        for value in self.scalars[scalar]:
            maker = defining_op(value)
            if sees(op, value) if maker is None else dominates(maker, op):
                return value
        return None

    def representative(self, scalar: int) -> ir.Value:
        """The first value that equals a scalar."""
        return next(iter(self.scalars[scalar]))

    def _key(self, value: ir.Value) -> object:
        """The value-numbering key: equal for equal ops on equal scalars."""
        op = defining_op(value)
        if op is None or (not op.name.startswith("arith.") and op.name not in _OPAQUE_OPS):
            return value
        operands = [v if isinstance(v.type, ir.MemRefType) else tuple(self.scalar(v).items()) for v in op.operands]
        return (op.name, *map(str, attributes_of(op).items()), str(value.type), *operands)

    def _vector(self, value: ir.Value) -> IndexForm | None:
        op, shape = defining_op(value), shape_of(value)
        no_steps = (ZERO,) * len(shape)
        if self._wraps(value) and (op is None or op.name in (*_SIGNED_CASTS, *_REMAINDERS, *_FORM_ARITHMETIC)):
            return None
        if op is None:
            return self._loop_carried_form(value)
        if op.name == "arith.constant":
            return _constant_vector_form(op.attributes["value"], shape)
        if op.name == "vector.step":
            return IndexForm(shape, ZERO, (constant(1),))
        if op.name == "vector.broadcast" and not is_vector(op.operands[0]):
            return IndexForm(shape, self.scalar(op.operands[0]), no_steps)
        if op.name in _SIGNED_CASTS:
            return self.of(op.operands[0])
        if op.name in _REMAINDERS:
            return self._remainder(op)
        if op.name in _FORM_ARITHMETIC:
            floored = _floored_remainder(op)
            if floored is not None:
                return self.of(floored)
            a, b = (self.of(v) for v in op.operands)
            return _FORM_ARITHMETIC[op.name](a, b) if a is not None and b is not None else None
        source = self.of(op.operands[0]) if moves_elements(op) else None
        return None if source is None else movement_form(op, source)

    def _remainder(self, op: ir.Operation) -> IndexForm | None:
        """The form of consecutive positions modulo a number: the first position's remainder plus 0, 1, and so on.

        No position wraps around if the modulus and the first position are multiples of the number of positions. For a
        modulus that is an argument of the kernel this is assumed.
        """
        positions, by = self.of(op.operands[0]), self.of(_unguarded_divisor(op.operands[1]))
        if positions is None or by is None or not by.is_splat or not is_vector(op.operands[0]):
            return None
        moving = [d for d, s in enumerate(positions.steps) if s]
        if len(moving) != 1 or constant_part(positions.steps[moving[0]]) != 1:
            return None
        count, modulus = positions.shape[moving[0]], constant_part(by.start)
        positive: set[int] = set()
        if self.divisor(positions.start) % count or not self.is_nonnegative(positions.start, positive):
            return None
        if (modulus is None and not (len(by.start) == 1 and self.depends_on_arguments(by.start))) or (
            modulus or count
        ) % count:
            return None
        if (modulus is not None and modulus < 1) or (modulus is None and [*by.start.values()] != [1]):
            return None
        if any(self.dominating_value(s, op) is None for p in (positions.start, by.start) for m in p for s in m):
            return None
        with ir.InsertionPoint(op), op.location:
            operands = [index(self.build(p, op)) for p in (positions.start, by.start)]
            first = create("arith.remsi", [index_type()], operands).results[0]
        ((scalar,),) = self._opaque_scalar(first).start
        divisor = None if modulus is not None else self.representative(next(iter(by.start))[0])
        self.assumed[scalar] = (divisor, count, frozenset(positive))
        return IndexForm(positions.shape, scalar_polynomial(scalar), positions.steps)

    def _loop_carried_form(self, value: ir.Value) -> IndexForm | None:
        """The form of a value that a loop carries, if each iteration adds the same number to all elements."""
        number = argument_number(value, "scf.for")
        if not number or not self._through_loops:
            return None
        block = ir.BlockArgument(value).owner
        loop = block.owner.operation
        first, _, step = list(loop.operands)[:3]
        before = self.of(loop.operands[2 + number])
        stride = constant_of(step)
        if before is None or stride is None:
            return None
        # In the body, the value at the start of an iteration is an opaque scalar.
        forms = dict(self._forms)
        initial = self._opaque_scalar(value).start
        self._forms[value] = IndexForm(before.shape, initial, (ZERO,) * len(before.shape))
        after = self.of(yielded(block)[number - 1])
        self._forms = forms
        if after is None or not after.is_splat:
            return None
        by, fits = plus(after.start, initial, -1), set[int]()
        if any(n % stride for n in by.values()):
            by = self.unwrapped(by, fits)
        if any(n % stride for n in by.values()) or any(self._depends_on_body(s, block) for m in by for s in m):
            return None
        counter = self.scalar(block.arguments[0])
        ((scalar,),) = counter
        self._fits.setdefault(scalar, set()).update(fits)
        passed = plus(counter, self.scalar(first), -1)
        moves = product(passed, {m: n // stride for m, n in by.items()})
        return before.plus(IndexForm(before.shape, moves, (ZERO,) * len(before.shape)))

    def _depends_on_body(self, number: int, block: ir.Block) -> bool:
        """Return whether a scalar is defined in the body of a loop, or depends on one that is."""
        if number in self._unwrapped_forms:
            return any(self._depends_on_body(s, block) for m in self._unwrapped_forms[number] for s in m)
        at: ir.Block | None = block_of(self.representative(number))
        while at is not None and at != block:
            parent = at.owner.operation if at.owner is not None else None
            at = parent.block if parent is not None and parent.name != "gpu.func" else None
        return at is not None

    def build(self, p: Polynomial, op: ir.Operation, replacements: Mapping[ir.Value, ir.Value] | None = None) -> Index:
        """Build the index that a polynomial describes, at the current insertion point.

        Args:
            op: the op that uses the index.
            replacements: the new values of replaced ones.
        """
        terms: list[Index] = []
        for m, n in p.items():
            term: Index = n
            for scalar in m:
                value = self.dominating_value(scalar, op)
                assert value is not None
                value = replacements.get(value, value) if replacements else value
                if not isinstance(value.type, ir.IndexType):
                    value = create("arith.index_cast", [index_type()], [value]).results[0]
                term = multiply(term, value)
            terms.append(term)
        return add(*terms) if terms else 0

    def divisor(self, p: Polynomial) -> int:
        """The largest power of two that is known to divide a polynomial; 0 if it is 0."""
        return math.gcd(*(math.prod((n, *map(self._divisor, m))) for m, n in p.items()))

    def _divisor(self, scalar: int) -> int:
        if scalar in self.assumed:
            return self.assumed[scalar][1]
        return self._integers.divisor(self.representative(scalar))

    def is_nonnegative(self, p: Polynomial, positive: set[int] | None = None) -> bool:
        """Return whether a polynomial is at least 0.

        A divisor that depends on more than arguments is taken for positive, such as the rows of a group of programs.

        Args:
            positive: gets the scalars of the arguments that must be positive for that. Without it arguments may be
                negative, but those that launches of the kernel check.
        """
        least = 0
        for monomial, n in p.items():
            is_constant = not monomial
            needed: set[int] = set()
            if not is_constant and (n < 0 or not all(self._is_nonnegative_scalar(s, needed) for s in monomial)):
                return False
            if needed and positive is None:
                return False
            if positive is not None:
                positive |= needed
            least += n if is_constant or needed.issuperset(monomial) else 0
        return least >= 0

    def _is_nonnegative_scalar(self, scalar: int, positive: set[int]) -> bool:
        value = self.representative(scalar)
        number = argument_number(value, "gpu.func", "func.func")
        if number is None or self._integers.bounds(value)[0] >= 0:
            return self._is_nonnegative(value, positive)
        if not is_assumed_positive(value.owner.owner.operation, number):
            positive.add(scalar)
        return True

    def _is_nonnegative(self, value: ir.Value, positive: set[int]) -> bool:
        op = defining_op(value)
        if op is None:
            loop = ir.BlockArgument(value).owner.owner.operation
            counts = argument_number(value, "scf.for") == 0 and "unsignedCmp" not in loop.attributes
            return counts and self.is_nonnegative(self.scalar(loop.operands[0]), positive)
        inner = _floored_remainder(op) or _guarded_quotient(op)
        if inner is not None:
            return self._is_nonnegative(inner, positive)
        if op.name in _QUOTIENTS:
            dividend, divisor = op.operands
            return self._may_divide(divisor, positive) and self.is_nonnegative(self.scalar(dividend), positive)
        if op.name in ("arith.maxsi", "arith.minsi"):
            holds = any if op.name == "arith.maxsi" else all
            return holds(self.is_nonnegative(self.scalar(v), positive) for v in op.operands)
        return op.name == "memref.dim" or self._integers.bounds(value)[0] >= 0

    def _may_divide(self, divisor: ir.Value, positive: set[int]) -> bool:
        """Whether quotients by a number have the sign of the dividend, or it is taken for positive."""
        number, needed = _unguarded_divisor(divisor), set[int]()
        if self.is_nonnegative(self.scalar(number), needed):
            positive |= needed
            return True
        return not is_made_of_arguments(number)

    def depends_on_arguments(self, p: Polynomial) -> bool:
        """Return whether a polynomial depends only on arguments of the kernel and their extents."""
        return all(_is_argument(self.representative(s)) for m in p for s in m)


_REMAINDERS = ("arith.remsi", "arith.remui")


def _unguarded_divisor(number: ir.Value) -> ir.Value:
    """The divisor of a guarded division, without the select that replaces 0 and -1 by 1; see `_floored_remainder`."""
    op = defining_op(number)
    if op is None or op.name != "arith.select":
        return number
    test, one_constant, denominator = op.operands
    compared = defining_op(test)
    if (
        compared is None
        or compared.name != "arith.cmpi"
        or _constant_element(one_constant) != 1
        or _predicate(compared) != "ule"
    ):
        return number
    sum_, limit = compared.operands
    added = defining_op(sum_)
    if added is None or added.name != "arith.addi" or added.operands[0] != denominator:
        return number
    return denominator if _constant_element(added.operands[1]) == _constant_element(limit) == 1 else number


def _floored_remainder(op: ir.Operation) -> ir.Value | None:
    """The truncating remainder from which an op computes a flooring remainder; None for other ops.

    The tile language adds the divisor where the remainder and the divisor have different signs.
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
    if unlike is None or unlike.name != "arith.xori" or _constant_element(negative.operands[1]) != 0:
        return None
    return op.operands[0] if [*unlike.operands] == [first.results[0], first.operands[1]] else None


def _guarded_quotient(op: ir.Operation) -> ir.Value | None:
    """The quotient of a guarded division, in whose place a select uses -dividend or 0 for divisors -1 and 0."""
    if op.name != "arith.select":
        return None
    alternative, quotient = (defining_op(v) for v in list(op.operands)[1:])
    if alternative is None or quotient is None or quotient.name not in _QUOTIENTS or alternative.name != "arith.andi":
        return None
    negated = defining_op(alternative.operands[0])
    if negated is None or negated.name != "arith.subi" or _constant_element(negated.operands[0]) != 0:
        return None
    return op.operands[2] if negated.operands[1] == quotient.operands[0] else None


def _uncast(value: ir.Value) -> ir.Operation | None:
    op = defining_op(value)
    while op is not None and op.name in (*_SIGNED_CASTS, "arith.extui"):
        op = defining_op(op.operands[0])
    return op


def _constant_element(value: ir.Value) -> int | None:
    """The constant integer that all elements of a value are."""
    element = splat_of(value) if is_vector(value) else None
    return constant_of(value) if element is None else int(ir.IntegerAttr(element).value)


def _stated_extent(dim: ir.Operation) -> ir.Value | int | None:
    """The number that a `memref.reinterpret_cast` states for the extent that an op reads; None for other memrefs."""
    cast, number = defining_op(dim.operands[0]), constant_of(dim.operands[1])
    if cast is None or cast.name != "memref.reinterpret_cast" or number is None:
        return None
    extents = view_numbers(cast)[1]
    return extents[number] if 0 <= number < len(extents) else None


def _predicate(compared: ir.Operation) -> str:
    return PREDICATES[ir.IntegerAttr(compared.attributes["predicate"]).value]


def _is_argument(value: ir.Value) -> bool:
    op = defining_op(value)
    if op is None:
        return argument_number(value, "gpu.func") is not None
    return op.name == "memref.dim" and _is_argument(op.operands[0])


def _form_product(a: IndexForm, b: IndexForm) -> IndexForm | None:
    return a.times(b.start) if b.is_splat else b.times(a.start) if a.is_splat else None


_FORM_ARITHMETIC: dict[str, Callable[[IndexForm, IndexForm], IndexForm | None]] = {
    "arith.addi": IndexForm.plus,
    "arith.subi": lambda a, b: a.plus(b, -1),
    "arith.muli": _form_product,
}


def _constant_vector_form(attr: ir.Attribute, shape: tuple[int, ...]) -> IndexForm | None:
    """The form of a vector of constants; None if these have none."""
    if isinstance(attr, ir.DenseElementsAttr) and attr.is_splat:
        number = int(ir.IntegerAttr(attr.get_splat_value()).value)
        return IndexForm(shape, constant(number), (ZERO,) * len(shape))
    if not isinstance(attr, ir.DenseIntElementsAttr):
        return None
    numbers = np.array(integer_elements(attr), dtype=object).reshape(shape)
    origin = numbers[(0,) * len(shape)]
    units = [tuple(int(i == d) for i in range(len(shape))) for d in range(len(shape))]
    steps = [int(numbers[u] - origin) if n > 1 else 0 for u, n in zip(units, shape)]
    expected = origin + sum(s * i for s, i in zip(steps, np.indices(shape).astype(object)))
    return IndexForm(shape, constant(int(origin)), tuple(map(constant, steps))) if (numbers == expected).all() else None


# Ops that move elements.


def moves_elements(op: ir.Operation) -> bool:
    """Return whether `movement_form` knows the op."""
    return op.name in VIEWS or op.name in ("vector.shape_cast", "xetile.broadcast", "xetile.transpose")


def movement_form(op: ir.Operation, form: IndexForm) -> IndexForm | None:
    """The form of the result of an op that moves elements, from that of its operand."""
    shape, view = shape_of(op.results[0]), op.opview
    if op.name == "xetile.broadcast":
        if view.broadcast_size is not None:
            return None
        return IndexForm(shape, form.start, tuple(ZERO if d in view.dims else s for d, s in enumerate(form.steps)))
    if op.name == "xetile.transpose":
        return IndexForm(shape, form.start, tuple(form.steps[d] for d in view.permutation))
    if op.name == "vector.shape_cast":
        return _reshaped_form(form, shape)
    element_view = view_of(op)
    if element_view is None:
        return None
    start, along = form.start, dict(zip(element_view.dims, form.steps))
    for step, first in zip(form.steps, element_view.first):
        start = plus(start, step, first)
    return IndexForm(shape, start, tuple(along.get(d, ZERO) for d in range(len(shape))))


def _reshaped_form(form: IndexForm, shape: tuple[int, ...]) -> IndexForm | None:
    steps: list[Polynomial] = []
    for source_dims, result_dims in groups(form.shape, shape) or ():
        step = form.step_of(source_dims)
        if step is None:
            return None
        steps += [product(step, constant(math.prod(shape[d + 1 : result_dims.stop]))) for d in result_dims]
    return IndexForm(shape, form.start, tuple(steps))


# Masks: the inequalities that hold for the elements that they select.

_ORDERS = {"slt": (1, 0), "sle": (1, 1), "sgt": (-1, 0), "sge": (-1, 1)}
"""For a comparison of `a` and `b`: the sign of `b - a`, and the number to add so that true means above 0."""


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
        yield _comparison_form(forms, op)
    elif op.name == "vector.create_mask":
        shape = shape_of(mask)
        for d, bound in enumerate(op.operands):
            steps = tuple(constant(-1 if d == i else 0) for i in range(len(shape)))
            yield IndexForm(shape, forms.scalar(bound), steps)
    elif moves_elements(op) and is_vector(op.operands[0]):
        for form in conditions(forms, op.operands[0]):
            yield None if form is None else movement_form(op, form)
    else:
        yield None


def _comparison_form(forms: IndexForms, op: ir.Operation) -> IndexForm | None:
    order = _ORDERS.get(_predicate(op))
    a, b = (forms.of(v) if is_vector(v) else None for v in op.operands)
    if order is None or a is None or b is None:
        return None
    sign, more = order
    difference = b.plus(a, -1) if sign > 0 else a.plus(b, -1)
    return IndexForm(difference.shape, plus(difference.start, constant(more)), difference.steps)
