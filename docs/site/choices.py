"""`python docs/site/choices.py docs`: the table of chosen rules in numerics.md, from the records of the rules."""

import re
import sys
from pathlib import Path

from xegpu_py.numerics.choices import CHOICES, FUNCTIONS, Choice

_HEAD = "| Choice | Default | Alternatives that are modelled | Selected by |\n| --- | --- | --- | --- |\n"

_SELECTED = {
    "model": "`model`, `--model`",
    "dpas_denormals": "`dpas_denormals`, `--dpas-denormals`",
    "choices": "`choices`, `--choice`",
    "order": "the [fidelity report](fidelity.md) only",
    "": "",
}


_ACCURACIES = [f"{name}-accuracy" for name in FUNCTIONS]


def _row(choice: Choice) -> str:
    page, _, anchor = choice.section.partition("#")
    link = f"#{anchor}" if page == "numerics.md" else choice.section
    others = "; ".join(f"`{name}`: {said}" for name, said in choice.alternatives.items())
    default = f"`{choice.default}`: {choice.rule}"
    names = [choice.name]
    if choice.name in _ACCURACIES:
        names, default = _ACCURACIES, f"`{choice.default}`: the instruction is rounded to nearest even"
    shown = ", ".join(f"[`{name}`]({link})" for name in names)
    return f"| {shown} | {default} | {others or 'no alternative modelled'} | {_SELECTED[choice.option]} |\n"


def page(text: str) -> str:
    """The page with the table of today."""
    table = _HEAD + "".join(_row(choice) for name, choice in CHOICES.items() if name not in _ACCURACIES[1:])
    made, count = re.subn(r"\| Choice \|.*\n(\|.*\n)+", lambda _: table, text)
    assert count == 1
    return made


if __name__ == "__main__":
    file = Path(sys.argv[1]) / "numerics.md"
    file.write_text(page(file.read_text()))
