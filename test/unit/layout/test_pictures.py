"""The pictures of layouts are true to the layouts."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from markdown import ROOT
from pictures import LAYOUTS, pictures
from pictures_geometry import check_extents

from xegpu_py.layout import LayoutError, NestedLayout, from_sg_map, nested
from xegpu_py.layout.nested import layout_picture
from xegpu_py.layout.pictures import dpas_picture

from .strategies import layouts

SVG = "{http://www.w3.org/2000/svg}"


def cells(svg):
    """Index of the first element, count, and the owners' numbers of each cell; its label, fill and title."""
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        if group.get("data-lane") is not None:
            rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
            index = tuple(map(int, filter(None, group.get("data-index").split(","))))
            owners = [list(map(int, group.get(f"data-{what}").split(","))) for what in ("subgroup", "lane", "position")]
            yield (
                index,
                int(group.get("data-count")),
                owners,
                text.text,
                rect.get("fill"),
                rect.find(f"{SVG}title").text,
            )


def check_lines(layout, picture):
    """Each plane has lines around cells, stronger ones around batches, the strongest around tiles of subgroups."""
    rows, columns = (1, 1, *layout.shape)[-2:]
    run = layout.element_tile[-1] if layout.rank else 1
    edges, ends = [], []
    for group in ET.fromstring(picture).iter(f"{SVG}g"):
        if group.get("data-lane") is not None:
            x, y, width, height = (float(group.find(f"{SVG}rect").get(a)) for a in ("x", "y", "width", "height"))
            edges.append((x, y))
            ends.append((x + width, y + height))
    batch = np.prod([layout.outer_tile, layout.thread_tile, layout.element_tile], axis=0, dtype=int)
    steps = [(1, run), batch, batch * np.array(layout.batch_tile, int)]
    lines = [path.get("d") for path in ET.fromstring(picture).iter(f"{SVG}path")]
    across, cells_of_plane = columns // run, rows * columns // run
    assert len(lines) == 3 * len(edges) // cells_of_plane
    for n, path in enumerate(lines):
        plane = slice(n // 3 * cells_of_plane, (n // 3 + 1) * cells_of_plane)
        down, right = (1, 1, *steps[n % 3])[-2:]
        ys = [y for _, y in edges[plane][::across]] + [ends[plane][-1][1]]
        xs = [x for x, _ in edges[plane][:across]] + [ends[plane][across - 1][0]]
        found = [
            [float(a) for a in re.findall(rf"M{at} ?{to}", path)]
            for at, to in ((r"[-\d.]+ ([-\d.]+)", "H"), (r"([-\d.]+) [-\d.]+", "V"))
        ]
        assert found[0] == pytest.approx(ys[:: rows if layout.rank < 2 else down], abs=0.02)
        assert found[1] == pytest.approx(xs[:: right // run], abs=0.02)


@settings(max_examples=examples(30))
@given(layouts(whole=True, most=128))
@example(NestedLayout((), (), (), (), (), (), ()))
def test_every_element_is_shown_with_all_owners(layout):
    found = layout.owners()
    seen, picture = np.zeros(layout.shape, int), layout_picture(layout)
    check_extents(picture, 14, 14)
    check_lines(layout, picture)
    for index, count, (subgroup, lane, position), label, _, title in cells(picture):
        for k in range(count):
            at = (*index[:-1], index[-1] + k) if index else ()
            seen[at] += 1
            assert found.subgroup[at].tolist() == subgroup and found.thread[at].tolist() == lane
            assert found.position[at].tolist() == [p + k for p in position]
        assert int(label) == (lane[0] if layout.threads.period > 1 else subgroup[0])
        assert title.splitlines()[0].startswith(str(list(index)))
        assert len(title.splitlines()) == 1 + len(subgroup)
    assert (seen == 1).all()
    planes = [f"[{', '.join(map(str, plane))}, :, :]" for plane in np.ndindex(layout.shape[:-2]) if plane]
    assert re.findall(r">(\[\d[\d, ]*, :, :\])<", picture) == planes


def test_colours_are_of_subgroups_or_of_rounds():
    by_subgroup = {}
    for _, _, (subgroup, _, _), _, fill, _ in cells(pictures()["layout/nested-64x64.svg"]):
        by_subgroup.setdefault(tuple(subgroup), set()).add(fill)
    assert set(by_subgroup) == {(0, 2), (1, 3)} and len(set.union(*by_subgroup.values())) == 2
    rounds = {}
    for (row, _), _, _, _, fill, _ in cells(layout_picture(from_sg_map([2, 8], [1, 2], [8, 16]))):
        rounds.setdefault(row // 2, set()).add(fill)
    assert [len(fills) for fills in rounds.values()] == [1] * 4 and len(set.union(*rounds.values())) == 4


@pytest.mark.parametrize("rounds", [1, 23, 24, 25, 40])
def test_the_legend_has_24_entries_at_most(rounds):
    picture = layout_picture(NestedLayout((1,), (rounds,), (1,), (4,), (1,), (1,), (1,)))
    entries = re.findall(r'y="53"', picture)
    assert len(entries) == min(rounds, 24) and ("…" in picture) == (rounds > 24)


def test_too_large_a_picture_is_refused(monkeypatch):
    with pytest.raises(LayoutError, match="a picture of 65536 cells is too large; at most 20000"):
        layout_picture(from_sg_map([1, 16], [1, 1], [256, 256]))
    monkeypatch.setattr(nested, "MOST_CELLS", 32)
    assert layout_picture(from_sg_map([1, 16], [1, 1], [2, 16]))
    with pytest.raises(LayoutError, match="a picture of 48 cells is too large; at most 32"):
        layout_picture(from_sg_map([1, 16], [1, 1], [3, 16]))
    with pytest.raises(LayoutError, match="cannot be spread evenly over 5"):
        layout_picture(NestedLayout((2,), (1,), (1,), (4,), (1,), (1,), (1,)), subgroups=5)


@pytest.mark.parametrize(
    ("w", "a", "message"),
    [
        ("df", "hf", "df has channels of 64 bits"),
        ("hf", "df", "df has channels of 64 bits"),
        ("xf", "hf", "must be one of"),
    ],
)
def test_products_without_a_picture(w, a, message):
    with pytest.raises(ValueError, match=message):
        dpas_picture(w, a)


def test_layouts_of_the_page():
    page = (ROOT / "docs" / "layouts.md").read_text()
    assert set(re.findall(r"\(layout/([\w-]+)\.svg\)", page)) == set(LAYOUTS)
    # The picture's text states the layout that is drawn.
    assert str(NestedLayout.parse(str(LAYOUTS["nested-64x64"][1]))) == str(LAYOUTS["nested-64x64"][1])
    text = re.search(r"#example = (#.*?>)\n", page, re.DOTALL)[1]
    assert NestedLayout.parse(" ".join(text.split())) == LAYOUTS["nested-64x64"][1]


def test_the_pictures_of_the_documents_are_up_to_date():
    """Every position, size and word of them."""
    made = pictures()
    for folder in ("visa", "layout", "xetile"):
        committed = {f"{folder}/{path.name}": path.read_text() for path in (ROOT / "docs" / folder).iterdir()}
        expected = {name: svg for name, svg in made.items() if name.startswith(f"{folder}/")}
        assert committed == expected, "run `make docs`"
