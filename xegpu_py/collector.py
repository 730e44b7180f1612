"""Python's cyclic garbage collector, which need not look at modules and IR: they live long and have few cycles."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from xegpu_py.interrupts import is_tool


@contextmanager
def collector_paused() -> Iterator[None]:
    """A context manager that stops the collector.

    If modules are imported meanwhile, most new objects are theirs and live as long as the process. All objects are then
    moved to the collector's oldest generation at the end, instead of being looked at.
    """
    was, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was and len(sys.modules) > modules and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was:
            gc.enable()


if is_tool():
    # Nearly all objects of a tool live until its end, so that frequent collection finds nothing.
    gc.set_threshold(100_000)
