"""Tests leave nothing among the caches of who runs them."""

import os

os.environ.setdefault("XEGPU_PY_CACHE", "off")


def pytest_addoption(parser):
    parser.addoption("--save-screenshots", action="store_true", help="make docs/site/screenshots anew")
