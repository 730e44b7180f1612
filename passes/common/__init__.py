"""Helpers that several passes share.

- `conversion`: the rewriting of a function by patterns (`patterns`), in which a value may become several, and all
  control flow with them.
- `builders`: builders of common ops; `values`: facts about values, types and attributes.
- `cloning`: copies of ops on other values.
- `control_flow`: the values that loops, branches and blocks forward to others.
- `all_reduce`: the reduction of a workgroup. `union_find`: values that belong together.
- `effects`: which ops only compute and read.
- `transfers`: the operands and attributes of vector transfers.
- `divisors`, `surfaces`: facts about indices, and about the tensors of block descriptors.
- `layouts`: the layouts of vectors, and how they flow through a function.
- `kernels`: attributes of kernels; `gpu_functions`, `calls`: the functions that run on a GPU.
- `messages`, `registers`, `limits`: the messages, types and limits of vISA that an op needs. `declarations`: the
  variables that instructions name.
"""
