"""Rules that lower instructions to LLVM IR, one each, in modules named like those of the golden functions.

Each module has a table by the instruction's name:

- `alu.ARITHMETIC` and `elementary.ELEMENTARY`: `(op, *sources) -> result`, on vectors of numbers of the execution type
  (see `Alu`);
- `RULES` of `registers`, `matrix`, `scaled`, `memory` and `block2d`: `(emitter, inst, at) -> None`, which read operands
  and write results;
- `control.CONTROL`: `(control, inst, at) -> None`, which end blocks.
"""
