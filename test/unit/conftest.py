"""Tests leave nothing among the caches of who runs them."""

import gc
import os

os.environ["XEGPU_PY_CACHE"] = "off"
# As the tools do: looking for cycles among many objects that live on takes an eighth of the time.
gc.set_threshold(100_000)


def pytest_addoption(parser):
    parser.addoption("--save-screenshots", action="store_true", help="update docs/site/screenshots")
