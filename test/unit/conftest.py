"""Tests leave nothing among the caches of who runs them."""

import os

os.environ["XEGPU_PY_CACHE"] = "off"
