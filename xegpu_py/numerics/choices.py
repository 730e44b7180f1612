"""The rules that no source decides: each is one record with a name, a default and its alternatives.

docs/numerics.md's table, the values of the options that select an alternative, and the fidelity report come from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

Option = Literal["model", "dpas_denormals", "choices", "order", ""]
"""How an alternative is selected: an option of a kernel; `order`, the order of the workgroups of a launch."""


class Choice(Struct, frozen=True):
    """A rule that no source decides.

    Attributes:
        name: its name.
        default: the name of the rule that holds.
        rule: what it says.
        section: the section of docs/numerics.md, or the page, that has the reason.
        alternatives: other rules that are modelled, by name, and what each of them says.
        option: what selects an alternative; empty if there is none.
        is_visible: whether instructions tell where the rule matters. The others are rules of lowering and of host code.
    """

    name: str
    default: str
    rule: str
    section: str
    alternatives: Mapping[str, str] = {}
    option: Option = ""
    is_visible: bool = True

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the rules, the default first."""
        return (self.default, *self.alternatives)


FUNCTIONS = ("inv", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "sigm", "pow", "invm", "rsqtm")
"""The instructions whose accuracy no document states, or states as that of an approximation."""

_MATH, _DPAS, _ALU = "numerics.md#arithmetic-of-floats", "numerics.md#dpas", "numerics.md#alu-instructions"
_DENORMALS, _ORDER = "numerics.md#subnormal-numbers", "fidelity.md#order-of-atomic-additions"

NEIGHBOURS = {
    "smaller": "the next number toward zero where the result is not exact",
    "greater": "the next number away from zero where the result is not exact; 1 stays the greatest sine, cosine, tanh "
    "and sigm",
}
"""The alternatives of an accuracy: an error of at most 1.5 units in the last place."""

_ALL = (
    Choice(
        "dpas-sums",
        "fma",
        "dpas rounds to nearest even after each product, in increasing k",
        _DPAS,
        {
            "stage": "after the products of each stage; their sum with the accumulator is exact",
            "exact": "once, after the whole sum",
            "dot": "the sum of a stage's products, then its sum with the accumulator (DPAS.md's pseudo code, `dot2`)",
            "stage-zero": "as `stage`, but toward zero",
        },
        "model",
    ),
    Choice(
        "dpas-denormals",
        "keep",
        "dpas keeps subnormal numbers of bf, tf32, eight-bit floats and e2m1 where no source decides",
        _DENORMALS,
        {"flush": "it takes them for zeros"},
        "dpas_denormals",
    ),
    Choice(
        "dpas-mask",
        "kept",
        "dpas does not write the columns of disabled lanes",
        _DPAS,
        {"written": "it writes the columns of all lanes"},
        "choices",
    ),
    Choice(
        "dpas-tf32",
        "ignored",
        "dpas ignores the lowest 13 bits of tf32 operands",
        _DPAS,
        {"rounded": "it rounds them to nearest even"},
        "choices",
    ),
    Choice("dpas-repeat", "depth", "src2 of dpas advances by SD x OPS_PER_CHAN elements a repeat", _DPAS),
    Choice("dpas-rows", "contiguous", "rows of 16-bit accumulators and results of dpas are contiguous", _DPAS),
    Choice("dpas-df", "channels", "columns of df operands of dpas are in 64-bit channels", _DPAS),
    Choice(
        "bdpas-products",
        "exact",
        "neither scaled elements of bdpas nor their products are rounded",
        "numerics.md#bdpas",
        {"f": "scaled elements are rounded to f32"},
        "choices",
    ),
    *(
        Choice(f"{name}-accuracy", "rounded", f"{name} is rounded to nearest even", _MATH, NEIGHBOURS, "choices")
        for name in FUNCTIONS
    ),
    Choice(
        "division",
        "quotient",
        "div of floats is the rounded quotient",
        _MATH,
        {"inverse": "the dividend times the rounded inverse, rounded again, as DIV.md says"},
        "choices",
    ),
    Choice("math-special", "ieee", "special values of math functions are those of IEEE 754-2019", _MATH),
    Choice(
        "nan-bits",
        "canonical",
        "NaN results are positive, quiet and without payload",
        "numerics.md#formats",
        {"negative": "they have the sign bit set"},
        "choices",
    ),
    Choice(
        "alu-denormals",
        "flushed",
        "all arithmetic, min, max and conversions flush where `%cr0` does not keep subnormal numbers",
        _DENORMALS,
        {"kept": "none does"},
        "choices",
    ),
    Choice(
        "float-to-integer", "nearest", "numbers out of range give the nearest limit, NaN gives 0", "numerics.md#mov"
    ),
    Choice(
        "srnd-subnormal",
        "truncated",
        "srnd to a subnormal hf adds 13 random bits at mantissa bit 0",
        "numerics.md#srnd",
    ),
    Choice(
        "execution-type", "widest", "floats of several types, and bf, are computed in one type, then converted", _ALU
    ),
    Choice("minimum", "number", "min and max prefer a number to a NaN, and -0 is less than +0", _ALU),
    Choice("saturation", "zero", "saturation of floats gives +0 for NaN and -0", _ALU),
    Choice("integer-types", "values", "integers of several types are computed by their values, without limit", _ALU),
    Choice("atomic-minimum", "number", "lsc_atomic_fmin and lsc_atomic_fmax prefer a number to a NaN", _ALU),
    Choice(
        "atomic-order",
        "first",
        "atomic additions of floats happen in the order of the workgroups",
        _ORDER,
        {"last": "the last workgroup runs first"},
        "order",
    ),
    Choice(
        "switchjmp",
        "last",
        "a number of switchjmp beyond its labels means the last one",
        "visa.md#the-visa-that-igc-prints",
    ),
    Choice(
        "reduction-order",
        "halves",
        "reductions of vectors add by halves",
        "numerics.md#reductions",
        {"sequential": "by increasing index, beginning with the accumulator"},
        "choices",
        is_visible=False,
    ),
    Choice("e2m1-nan", "greatest", "NaN becomes 6 in e2m1", "numerics.md#bdpas", is_visible=False),
    Choice(
        "block-scale-nan",
        "nan",
        "blocks with an infinity or a NaN have the scale NaN",
        "numerics.md#bdpas",
        is_visible=False,
    ),
)

CHOICES: Mapping[str, Choice] = {choice.name: choice for choice in _ALL}
"""All of them by name."""


def selected(texts: Iterable[str]) -> dict[str, str]:
    """The alternatives that texts `NAME=ALTERNATIVE` select by the option `choices`, by the choices' names.

    Raises:
        ValueError: if there is no such choice or alternative, or another option selects it.
    """
    alternatives = {}
    for text in texts:
        name, _, value = text.partition("=")
        choice = CHOICES.get(name)
        if choice is None or choice.option != "choices":
            names = [c.name for c in _ALL if c.option == "choices"]
            raise ValueError(f"'choices' must be NAME=ALTERNATIVE with a name of {', '.join(names)}, but got '{text}'")
        if value not in choice.values:
            raise ValueError(f"choice '{name}' must be one of {', '.join(choice.values)}, but got '{value}'")
        alternatives[name] = value
    return {name: value for name, value in alternatives.items() if value != CHOICES[name].default}
