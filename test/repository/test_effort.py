"""Which cases of tests `make test` runs."""

import itertools

from effort import with_each_value


def test_each_value_occurs():
    names, unhashable = [f"kernel {i}" for i in range(7)], [[1], [2], [3]]
    cases = [dict(zip(("name", "size", "data"), c)) for c in itertools.product(names, (1, 300), unhashable)]
    kept = [cases[i] for i in with_each_value(cases, "seed")]
    assert 7 <= len(kept) < 14
    assert {c["name"] for c in kept} == {*names} and {c["size"] for c in kept} == {1, 300}
    assert [any(c["data"] is value for c in kept) for value in unhashable] == [True] * 3
    # Values do not follow each other in the order of their parameters.
    assert len({(c["size"], c["data"][0]) for c in kept}) > 3
