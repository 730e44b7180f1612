"""The semantics of instructions: a table of functions by the instruction's name.

- `alu.ARITHMETIC`: `(op, *sources) -> result`, on the numbers of many threads and lanes at once (see `AluOp`);
- `registers.STEPS` and `memory.STEPS`: `(inst, layout, model) -> Step`, which make a step of many threads;
- `control.CONTROL`: `(inst, program, layout) -> Next`, which make what decides where threads go on.
"""
