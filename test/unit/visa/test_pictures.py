"""The pictures of DPAS operands are true to `pack` and to `dpas`."""

import re
import xml.etree.ElementTree as ET
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import ROOT
from pictures import OPERANDS
from pictures_geometry import check_extents

from xegpu_py.layout.pictures import dpas_picture
from xegpu_py.numerics import dpas, pack_a, pack_b, pack_c
from xegpu_py.numerics.dpas import operand_bytes, ops_per_channel
from xegpu_py.numerics.formats import PRECISIONS, bits_of

FOLDER = ROOT / "docs" / "visa"
PAGE = (ROOT / "docs" / "dpas-layout.md").read_text()
SVG = "{http://www.w3.org/2000/svg}"
INTEGERS = [f"{s}{n}" for n in (1, 2, 4, 8) for s in "us"]
ONE = {"bf": 0x3F80, **dict.fromkeys(INTEGERS, 1)}


def span(text: str) -> range:
    """The numbers that "3" and "3–5" stand for."""
    low, _, high = text.partition("–")
    return range(int(low), int(high or low) + 1)


def cells(svg: str) -> dict[str, dict[tuple[int, int], list[tuple[int, int]]]]:
    """By operand, by GRF and dword: the elements that a cell's text names, from the lowest bit on."""
    found = {"A": {}, "B": {}, "C": {}}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        operand = group.get("data-operand")
        if not operand:
            continue
        at = int(group.get("data-grf")), int(group.get("data-dword"))
        texts = [t.text for t in group.iter(f"{SVG}text")]
        assert at not in found[operand]
        if operand == "A":
            m, k = texts
            found["A"][at] = list(product(span(m.removeprefix("m ")), span(k.removeprefix("k "))))
        elif operand == "B":
            found["B"][at] = [(int(k), at[1]) for k in texts]
        else:
            found["C"][at] = [tuple(map(int, e.split(","))) for e in texts]
    return found


def fields(packed: np.ndarray, bits: int) -> np.ndarray:
    """Bit patterns of the elements of registers, from the lowest bit on."""
    every = np.unpackbits(packed, axis=-1, bitorder="little").astype(np.uint64)
    return (every.reshape(*every.shape[:-1], -1, bits) << np.arange(bits, dtype=np.uint64)).sum(axis=-1)


def random_matrices(rng: np.random.Generator, rows: int, columns: int, precision: str) -> np.ndarray:
    """So many matrices that no two elements are the same in all of them."""
    fmt = PRECISIONS[precision]
    low = -(1 << fmt.bits - 1) if fmt.kind == "s" else 0
    if fmt.is_float:
        return rng.integers(0, 256, (64, rows, columns * fmt.bytes), np.uint8).view(fmt.dtype)
    return rng.integers(low, low + (1 << fmt.bits), (64, rows, columns)).astype(fmt.dtype)


def check_cells(drawn: dict, matrices: np.ndarray, packed: np.ndarray, bits: int, dwords: int) -> None:
    """Each cell names what lies there, and all elements of a dword that is not elided."""
    registers, patterns = fields(packed, bits), bits_of(matrices).astype(np.uint64)
    if bits < 8:
        patterns &= np.uint64((1 << bits) - 1)
    per_dword = 32 // bits
    assert drawn
    for (grf, dword), elements in drawn.items():
        start = (grf * dwords + dword) * per_dword
        named = np.stack([patterns[:, r, c] for r, c in elements], axis=-1)
        np.testing.assert_array_equal(registers[:, start : start + len(elements)], named)
        # Elements without a name do not exist, or are the padding of B.
        assert not registers[:, start + len(elements) : start + per_dword].any()


pairs = st.one_of(
    st.tuples(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)),
    st.sampled_from([("bf", "bf"), ("hf", "hf"), ("tf32", "tf32"), ("bf8", "hf8"), ("hf8", "hf8")]),
)


@settings(max_examples=examples(60))
@given(
    pair=pairs,
    SD=st.sampled_from([1, 2, 4, 8]),
    RC=st.integers(1, 8),
    exec_size=st.sampled_from([8, 16]),
    seed=st.integers(0, 1 << 32),
)
def test_every_cell_names_what_pack_puts_there(pair, SD, RC, exec_size, seed) -> None:
    W, A = pair
    K = SD * ops_per_channel(W, A)
    if RC * K * PRECISIONS[A].bits % 8:
        RC = 8
    picture = dpas_picture(W, A, SD=SD, RC=RC, exec_size=exec_size)
    check_extents(picture, 14, 18, (18, 22))
    drawn = cells(picture)
    rng = np.random.default_rng(seed)
    a, b = random_matrices(rng, RC, K, A), random_matrices(rng, K, exec_size, W)
    c = rng.integers(0, 1 << 32, (64, RC, exec_size), np.uint32)
    check_cells(drawn["A"], a, pack_a(a, A), PRECISIONS[A].bits, exec_size)
    check_cells(drawn["B"], b, pack_b(b, W), PRECISIONS[W].bits, exec_size)
    check_cells(drawn["C"], c, pack_c(c, "ud"), 32, exec_size)
    # Of A and C all is drawn; of B all rows, and the first and the last lane.
    assert sorted(e for cell in drawn["A"].values() for e in cell) == list(np.ndindex(RC, K))
    assert sorted(e for cell in drawn["C"].values() for e in cell) == list(np.ndindex(RC, exec_size))
    shown = {e for cell in drawn["B"].values() for e in cell}
    assert shown >= {(k, n) for k in range(K) for n in (0, exec_size - 1)}


@pytest.mark.parametrize("name", OPERANDS)
def test_dpas_multiplies_what_the_picture_shows(name) -> None:
    W, A = OPERANDS[name]
    drawn = cells((FOLDER / f"{name}.svg").read_text())
    rng = np.random.default_rng(0)
    kind = "f" if W == "bf" else "d"

    def one(operand: str, precision: str, keep) -> tuple[np.ndarray, tuple[int, int]]:
        """Registers with a one in a random element, written by the place of its text."""
        bits = PRECISIONS[precision].bits
        places = [
            ((grf * 16 + dword) * 32 + i * bits, e)
            for (grf, dword), elements in drawn[operand].items()
            for i, e in enumerate(elements)
            if keep(e)
        ]
        bit, element = places[rng.integers(len(places))]
        return np.frombuffer((ONE[precision] << bit).to_bytes(8 * 64, "little"), np.uint8), element

    for _ in range(50):
        src2, (m, k) = one("A", A, lambda e: True)
        src1, (_, n) = one("B", W, lambda e, k=k: e[0] == k)
        out = dpas(None, src1, src2, W=W, A=A, SD=8, RC=8, exec_size=16, dst_type=kind, src0_type=kind)
        (found,) = np.flatnonzero(out.view(np.uint32))
        assert drawn["C"][divmod(int(found), 16)] == [(m, n)]


@pytest.mark.parametrize("name", OPERANDS)
def test_magnified_dwords(name) -> None:
    svg = (FOLDER / f"{name}.svg").read_text()
    drawn, seen = cells(svg), []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        operand = group.get("data-magnified")
        if operand:
            seen.append(operand)
            elements = drawn[operand][int(group.get("data-grf")), int(group.get("data-dword"))]
            assert [t.text for t in group] == [f"{operand}[{r},{c}]" for r, c in elements]
    assert seen == ["A", "B"]


@pytest.mark.parametrize("name", OPERANDS)
def test_well_formed_and_accessible(name) -> None:
    root = ET.parse(FOLDER / f"{name}.svg").getroot()
    assert root.tag == f"{SVG}svg"
    x, y, width, height = map(float, root.get("viewBox").split())
    assert (x, y) == (0, 0)
    identified = {e.get("id"): e for e in root.iter() if e.get("id")}
    assert root.get("role") == "img" and set(root.get("aria-labelledby").split()) == {"title", "desc"}
    assert identified["title"].tag == f"{SVG}title" and identified["desc"].tag == f"{SVG}desc"
    assert all(identified[i].text for i in ("title", "desc"))
    for e in root.iter():
        if e.tag in (f"{SVG}rect", f"{SVG}text"):
            left, top = float(e.get("x", 0)), float(e.get("y", 0))
            assert 0 <= left <= left + float(e.get("width", 0)) <= width
            assert 0 <= top <= top + float(e.get("height", 0)) <= height


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"W": "df", "A": "df"}, "64 bits"),
        ({"W": "bf", "A": "hf"}, "cannot be multiplied"),
        ({"W": "s8", "A": "f"}, "'A' must be one of"),
        ({"W": "bf", "A": "bf", "SD": 3}, "'SD' must be"),
        ({"W": "bf", "A": "bf", "RC": 9}, "'RC' must be"),
        ({"W": "bf", "A": "bf", "exec_size": 32}, "'exec_size' must be"),
        ({"W": "s8", "A": "u1", "SD": 1, "RC": 1}, "do not fill bytes"),
    ],
)
def test_what_cannot_be_drawn(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        dpas_picture(**arguments)


def test_links_and_pictures_of_the_page() -> None:
    folder = (ROOT / "docs" / "dpas-layout.md").parent
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        if "://" not in target:
            assert (folder / target).exists(), target
    for alt, name in re.findall(r"!\[([^]]*)\]\(visa/([\w-]+)\.svg\)", PAGE):
        title_and_desc = (FOLDER / f"{name}.svg").read_text().splitlines()[2]
        assert re.findall(r"(\d+) GRFs", alt) == re.findall(r"(\d+) GRFs \(", title_and_desc)
    assert set(re.findall(r"\(visa/([\w-]+)\.svg\)", PAGE)) == set(OPERANDS)
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(re.findall(r"\(#(.*?)\)", PAGE)) <= anchors


def test_sizes_in_the_page() -> None:
    row = re.compile(r"^\| ([\w, ]+?) \| ([\w, ]+?) \| (\d+) \| (\d+) \| (\d+) \| ([\d/]+) \| (\d+) \| (\d+) \|$", re.M)
    seen = set()
    for found in row.findall(PAGE):
        for W, A in product(found[0].split(", "), found[1].split(", ")):
            ops = ops_per_channel(W, A)
            src1, src2 = operand_bytes(W, A, 8, 8, 16)
            c = 8 * 16 * (8 if W == "df" else 4)
            grfs = [f"{n // 64}" if n % 64 == 0 else f"{n // 32}/2" for n in (src2, src1, c)]
            assert list(found[2:]) == [str(ops), str(8 * ops), str(32 // PRECISIONS[W].bits or 1), *grfs], (W, A)
            seen.add((W, A))
    floats = {("bf", "bf"), ("hf", "hf"), ("tf32", "tf32"), ("df", "df"), *product(("bf8", "hf8"), repeat=2)}
    assert set(product(INTEGERS, repeat=2)) <= seen
    assert floats <= seen


def test_storage_of_bf() -> None:
    """The pattern of 1.0 that is written above."""
    assert bits_of(np.ones(1, ml_dtypes.bfloat16))[0] == ONE["bf"]
