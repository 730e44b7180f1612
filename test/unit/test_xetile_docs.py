"""docs/xetile.md and its pictures are true."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown import ROOT, runs
from xegpu_py.dialects.xetile.ownership import Ownership, parts_problem
from xegpu_py.dialects.xetile.pictures import PICTURES, listed, main, owners, picture, pictures

PAGE = (ROOT / "docs" / "xetile.md").read_text()


def test_what_the_page_shows(tmp_path):
    found = list(runs(PAGE, tmp_path))
    assert len(found) > 6
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_committed_pictures_are_up_to_date(tmp_path):
    assert main([str(tmp_path)]) == 0
    for name, svg in pictures().items():
        assert (tmp_path / name).read_text() == svg
        assert (ROOT / "docs" / "xetile" / name).read_text() == svg, "run `make docs`"
    assert {p.name for p in (ROOT / "docs" / "xetile").iterdir()} == set(pictures())


@pytest.mark.parametrize("name", PICTURES)
def test_each_part_is_drawn_with_its_owners(name):
    title, shape, layout, data = PICTURES[name]
    root = ElementTree.fromstring(picture(title, shape, layout, data))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == title
    assert len(texts) - 1 == (shape[0] // data[0]) * (shape[1] // data[1])
    expected = [listed(numbers) for numbers in owners(Ownership.of(shape, layout, data)).values()]
    assert texts[1:] == expected


def test_shared_parts_are_named_as_in_the_picture():
    found = owners(Ownership.of((256, 32), (8, 4), (32, 32)))
    assert found[0, 0] == [0, 1, 2, 3]
    assert [listed(n) for n in ([5], [0, 1, 2, 3], [0, 4], [0, 4, 8, 12])] == ["5", "0-3", "0, 4", "0, 4, ... 12"]


@given(
    st.tuples(st.sampled_from([8, 24, 64]), st.sampled_from([8, 24, 64])),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.sampled_from([2, 4, 8]), st.sampled_from([2, 4, 8])),
)
def test_every_element_has_equally_many_owners(shape, layout, data):
    """Every element is owned, all by as many subgroups; and each subgroup owns as much."""
    if any(parts_problem(*d) for d in zip(shape, layout, data)):
        return
    own = Ownership.of(shape, layout, data)
    counts = {len(set(numbers)) for numbers in owners(own).values()}
    assert len(owners(own)) == (shape[0] // data[0]) * (shape[1] // data[1])
    assert len(counts) == 1
    assert len({len(own.starts(s)) for s in range(own.subgroups)}) == 1
    assert (counts == {1}) == (not own.is_shared)
    turned = own.transposed()
    for s in range(own.subgroups):
        assert {start[::-1] for start in turned.starts(s)} == set(own.starts(s))


def test_passes_of_the_page_exist():
    from xegpu_py.ir.passes import registered

    named = set(re.findall(r"^\| `(xetile-[\w-]+)`", PAGE, re.MULTILINE))
    assert named == {name for name in registered() if name.startswith("xetile-")}
