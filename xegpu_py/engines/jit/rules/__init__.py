"""Rules that lower instructions to LLVM IR. Each instruction has one rule. The modules have the names of the modules of
golden functions.

Each module has a table of rules by the names of instructions:

- `alu.ARITHMETIC` and `elementary.ELEMENTARY`: `(op, *sources) -> result`, on vectors of numbers of the execution type
  (see `Alu`);
- `RULES` of `registers`, `matrix`, `scaled`, `memory` and `block2d`: `(emitter, inst, at) -> None`, which read operands
  and write results;
- `control.CONTROL`: `(control, inst, at) -> None`, which end blocks.
"""
