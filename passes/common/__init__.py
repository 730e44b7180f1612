"""Helpers that several passes share.

- `conversion`: the rewriting of a function by patterns (`patterns`), in which a value may become several, and all
  control flow with them.
- `builders`: builders of common ops; `values`: facts about values, types and attributes; `ops`: replacements, copies
  and side effects of ops.
- `control_flow`: the values that loops, branches and blocks forward to others.
- `expansions`: expansions of upstream ops. `transfers`: the operands and attributes of vector transfers.
  `transforms`: the transforms of block loads, in registers.
- `divisors`, `surfaces`: facts about indices, and about the tensors of block descriptors.
- `layouts`: the layouts of vectors, and how they flow through a function. `fragments`, `union_find`: values that belong
  together.
- `kernels`: attributes of kernels; `gpu_functions`, `calls`: the functions that run on a GPU.
- `elements`: element types in memory; `registers`: in registers; `messages`: the messages of vISA that an op needs.
- `target_rules`: what a target supports.
"""
