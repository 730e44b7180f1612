"""What several passes share.

- `conversion`: the rewriting of a function by patterns (`patterns`), in which a value may become several, and all
  control flow with them.
- `builders`: ops that passes make most; `values`: facts about values, types and attributes.
- `cloning`: copies of ops on other values.
- `control_flow`: which values loops, branches and blocks pass on as which others.
- `combining`: the kinds of reductions. `all_reduce`: that of a workgroup. `union_find`: values that belong together.
- `effects`: which ops only compute and read.
- `transfers`: the operands and attributes of vector transfers.
- `divisors`, `surfaces`: what is known of indices, and of the tensors that block descriptors are made of.
- `layouts`: the layouts of vectors, and how they flow through a function.
- `kernels`: what kernels say of themselves; `gpu_functions`, `calls`: which functions run on which GPU.
- `messages`, `registers`, `limits`: what an op needs of vISA, and why a target has not got it. `declarations`: what
  instructions name.
"""
