"""The passes, one file each; importing this package registers them, and the pipelines.

What passes share is in `rewriting` (how IR is changed) and `analysis` (questions about it); no pass imports another.
"""

from xegpu_py.passes import (  # noqa: F401
    kernel_normalization,
    pipelines,
    vector_distribute,
    vector_layout_analysis,
    vector_lower_contract,
    vector_to_xegpu,
    visa_allocate,
    visa_optimize,
    xegpu_emulate_narrow_types,
    xegpu_expand_arith,
    xegpu_join_blocks,
    xegpu_load_ahead,
    xegpu_lower_unaligned_blocks,
    xegpu_simt_to_vc,
    xegpu_strength_reduce,
    xegpu_to_visa,
    xegpu_unroll,
    xegpu_verify_target,
    xetile_infer_layout,
    xetile_prefetch,
    xetile_scattered_to_tiles,
    xetile_split_stacks,
    xetile_to_xegpu,
    xetile_wg_to_sg,
)
