"""The semantics of instructions: a table of functions by the instruction's name.

- `alu.ARITHMETIC`: `(op, *sources) -> result`, on the numbers of many threads and lanes at once (see `AluOp`);
- `registers.STEPS` and `memory.STEPS`: `(inst, layout, model) -> Step`, which build a function that runs the
  instruction for many threads;
- `control.CONTROL`: `(inst, program, layout) -> Next`, which build a function that returns the next program counters.
"""
