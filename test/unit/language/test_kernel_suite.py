"""The suite of kernels: each against numpy, with equal bits on all engines."""

import ast
import inspect
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import xegpu_py

from .kernels import attention, elementwise, irregular, products, rows  # noqa: F401
from .kernels.suite import RUNS

REPEATED = """
    adamw_step argmax_of_rows attention_128 attention_128_causal attention_64 batched_matmul cholesky_factors
    convolution_as_a_product convolution_of_channels_in_time cross_entropy_and_its_gradient
    decoding_with_grouped_heads direct_convolution dropout_with_philox embedding_lookup epilogue_of_a_residual
    experts_of_tokens fp8_with_scales game_of_life gelu_by_erf gradient_of_keys gradient_of_keys_causal
    gradient_of_layer_norm gradient_of_queries gradient_of_queries_causal gradient_of_rms_norm gradient_of_softmax
    grid_stride histogram_by_atomics int8_with_requantization layer_norm_forward leaky_relu_backward
    linear_recurrence mandelbrot_set matmul_with_grouped_ordering matrix_times_vector means_of_groups
    mixture_of_experts morton_codes persistent_matmul pooling product_of_complex_matrices product_of_complex_numbers
    product_of_three product_of_transposes quantization_of_rows rank_update_of_the_lower_triangle rms_norm_forward
    rotary_embedding softmax_of_rows softmax_online sort_by_rank sparse_matrix_times_vector stencil_of_five_points
    streaming_the_inner_dimension sum_of_squares sums_of_columns transposed_matrix triangular_systems
    variance_in_one_pass vectors
"""
"""Kernels that execute no function of the package which other tests do not: `make sweep` runs them."""


def left(run, engine):
    """The arguments as a kernel leaves them."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in run.arguments]
    xegpu_py.jit(run.kernel, engine=engine)(*given, grid=run.grid, **run.constants)
    return given


@pytest.mark.filterwarnings("error:.*does not fit")
@pytest.mark.sweep(*REPEATED.split())
@pytest.mark.parametrize("name", RUNS)
def test_kernel(name):
    run = RUNS[name](np.random.default_rng(zlib.crc32(name.encode())))
    eager, compiled = left(run, "eager"), left(run, "both")
    for number, (mine, other) in enumerate(zip(eager, compiled)):
        if not isinstance(mine, np.ndarray):
            continue
        if number not in run.expected:
            assert mine.tobytes() == other.tobytes() == run.arguments[number].tobytes()
            continue
        wanted = run.expected[number].astype(mine.dtype)
        assert wanted.shape == mine.shape
        assert mine.tobytes() == other.tobytes()
        if run.tolerance:
            np.testing.assert_allclose(
                other.astype(float), wanted.astype(float), rtol=run.tolerance, atol=run.tolerance
            )
        else:
            np.testing.assert_array_equal(other, wanted)


@pytest.mark.parametrize("sizes", [{}, {"BM": 32, "BN": 32, "D": 32}])
def test_attention_fits_the_registers(sizes):
    run = RUNS["attention_64_causal"](np.random.default_rng(0))
    kernel = xegpu_py.jit(run.kernel, strict_grf=True)
    assert kernel.compile(*run.arguments, **{**run.constants, **sizes}).executor.allocation.pressure < 240


def test_there_are_enough():
    assert len(RUNS) >= 60


def lines(function):
    """Lines of a function's body, without docstring, comments and empty lines."""
    source = inspect.getsource(function)
    (tree,) = ast.parse(source).body
    body = tree.body[1:] if ast.get_docstring(tree) else tree.body
    text = source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text)


def test_lines_beside_tritons():
    """The table of docs/tile-language.md counts these kernels, of which none is longer than Triton's."""
    page = (Path(__file__).parents[3] / "docs" / "tile-language.md").read_text()
    table = [row.split("|")[1:-1] for row in page.splitlines() if row.startswith("|") and row.count("|") == 6]
    modules = (attention, elementwise, products, rows)
    found = {name: lines(f) for m in modules for name, f in vars(m).items() if inspect.isfunction(f)}
    counted = [row for row in table if row[1].strip()[:1].isdigit()]
    assert len(counted) == 11
    for _, _, theirs, names, ours in counted:
        total = sum(found[name] for name in re.findall(r"`(\w+)`", names))
        assert total == int(ours) <= int(theirs.replace("over", ""))
