"""Settings of all tests: they do not write to the user's caches, and hypothesis sets no time limit for examples."""

import gc
import os

from effort import examples
from hypothesis import settings

from xegpu_py.engines.jit import engine

os.environ["XEGPU_PY_CACHE"] = "off"
# Most kernels of tests run few threads. Random programs, the tests of lit and those of quick code also run quick code.
engine.QUICK_THREADS = 0
# As the tools do: looking for cycles among many objects that live on takes an eighth of the time.
gc.set_threshold(100_000)
# A loaded machine may take any time for an example.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")


def pytest_addoption(parser):
    parser.addoption("--save-screenshots", action="store_true", help="update docs/site/screenshots")
