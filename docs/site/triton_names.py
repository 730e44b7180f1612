"""`python docs/site/triton_names.py docs`: the table of Triton's names in the page of the tile language.

The rows are facts about Triton 3.9: the names of `triton.language.__all__`, and `advance` of earlier versions. Whether a
name is one of `xegpu_py.language` is asked of the module.
"""

import re
import sys
from pathlib import Path

import xegpu_py.language

ROWS: list[tuple[str, str, str]] = [
    ("program_id num_programs", "", ""),
    ("arange full zeros zeros_like", "", "`arange` gives `index`, and takes any bounds"),
    ("cast cat to_tensor", "", "`cat` keeps the order, and joins any number of values"),
    ("broadcast broadcast_to expand_dims unsqueeze squeeze", "", ""),
    ("interleave join split permute trans ravel reshape view", "", ""),
    ("dot dot_scaled", "", "`@` is `dot` of types that DPAS multiplies; scaled products are `bdpas` on target `cri`"),
    ("load store", "", "of tiles, and of pointers, which are `array + indices`"),
    (
        "make_block_ptr advance",
        "",
        "of an array, or from a pointer on; `array.tile(shape, at=...)` and `tile.advance(...)`, which moves it in place, are shorter",
    ),
    ("make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor tensor_descriptor", "", ""),
    (
        "atomic_cas atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_load atomic_store",
        "",
        "",
    ),
    ("flip where swizzle2d", "", "`where` also chooses between pointers"),
    ("abs cdiv ceil clamp cos div_rn erf exp exp2 fdiv floor fma log log2", "", ""),
    ("maximum minimum PropagateNan", "", "NaN is kept unless `PropagateNan.NONE` is asked for"),
    ("rsqrt sigmoid sin softmax sqrt sqrt_rn umulhi math", "", "also `tan`, `tanh`, `round`"),
    ("add sub mul", "", "integers wrap around"),
    ("argmax argmin max min sum xor_sum reduce_or reduce", "", "also `prod`, `any`, `all`, `mean`"),
    ("associative_scan cumprod cumsum", "", ""),
    ("histogram sort topk bitonic_merge gather", "", "any extents"),
    ("map_elementwise", "", "the function gets whole values: it uses `where` instead of `if`"),
    ("philox philox_impl rand rand4x randint randint4x randn randn4x", "", ""),
    ("pair_uniform_to_normal uint_to_uniform_float", "", ""),
    ("range static_range condition", "", "`num_stages=2` lets an iteration load the blocks of the next one"),
    (
        "assume multiple_of max_contiguous max_constancy",
        "",
        "the engines check assumptions; the other hints change nothing",
    ),
    (
        "debug_barrier device_assert device_print static_assert static_print expect_zero",
        "",
        "also `barrier`, `fence`, `named_barrier`",
    ),
    ("int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64", "", ""),
    (
        "float16 bfloat16 float32 float64 float8e5 float8e4nv dtype",
        "",
        "also `float8_e5m2`, `float8_e4m3fn`, `tfloat32`",
    ),
    ("tensor constexpr", "", "or `Value`, `Constexpr`"),
    ("block_type", "Value", "a value's type is its `dtype` and its `shape`"),
    ("pointer_type", "", "of the addresses in a `PointerTable`; pointers to an array are `array + indices`"),
    ("pi32_t", "int32", ""),
    ("slice tuple", "", "Python's"),
    ("inline_asm_elementwise", "", "of vISA: `inline_visa` without constraints; also `inline_mlir`"),
    ("atomic_poll", "", "a launch does not guarantee that the awaited workgroup runs"),
    ("const constexpr_type void", "", "type annotations, which kernels here do not need"),
    ("float8e4b15 float8e4b8 float8e5b16", "", "formats of other GPUs"),
    ("extra", "libdevice", ""),
    ("target_info", "", "properties of other GPUs"),
    ("TRITON_MAX_TENSOR_NUMEL", "", "the limit is the same, 1048576 elements"),
]
"""Names, what stands for them here if they are no names of the language, and a note."""

DOCUMENTED = """\
tensor tensor_descriptor program_id num_programs arange cat full zeros zeros_like cast broadcast broadcast_to
expand_dims interleave join permute ravel reshape split trans view dot dot_scaled load store
make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor make_block_ptr advance flip where
swizzle2d abs cdiv ceil clamp cos div_rn erf exp exp2 fdiv floor fma log log2 maximum minimum rsqrt sigmoid
sin softmax sqrt sqrt_rn umulhi argmax argmin max min reduce sum xor_sum associative_scan cumprod cumsum
histogram sort topk gather atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
atomic_xor randint4x randint rand randn range static_range inline_asm_elementwise assume debug_barrier
max_constancy max_contiguous multiple_of static_print static_assert device_print device_assert
""".split()  # noqa: SIM905
"""The names that Triton's documentation of its language lists."""


def table() -> str:
    """The table's text."""
    lines = ["| Triton | here | |", "| --- | --- | --- |"]
    for names, instead, note in ROWS:
        given = names.split()
        own = all(hasattr(xegpu_py.language, name) for name in given)
        here = "same" if own else instead and f"`{instead}`"
        shown = ", ".join(f"`{name}`" for name in given)
        lines.append(f"| {shown} | {here} | {note} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            print("triton_names.py: skipped: needs the folder of the pages: python docs/site/triton_names.py docs")
        )
    page = Path(sys.argv[1]) / "tile-language.md"
    page.write_text(re.sub(r"^\| Triton \| here \| \|\n(\|.*\n)*", lambda _: table(), page.read_text(), flags=re.M))
