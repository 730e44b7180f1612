"""Accesses outside of several arrays name the nearest one."""

import re

import numpy as np
import pytest

from xegpu_py.reference.storage import AddressSpace, Fault


def memory():
    found = AddressSpace("memory")
    return found, [found.add(name, np.zeros(size, np.uint8)) for name, size in (("%a", 16), ("%b", 64), ("%c", 32))]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("offset", "words"), [(-4, "4 bytes before"), (2, "reaching 6 bytes over the end of")])
def test_the_nearest_array_is_named(number, offset, words):
    found, arrays = memory()
    near = arrays[number]
    address = near.address + (offset if offset < 0 else len(near.data) + offset)
    message = f"{words} '{near.name}', which has {len(near.data)} bytes"
    with pytest.raises(Fault, match=re.escape(message)):
        found.read(np.array([address]), np.dtype(np.uint32))
