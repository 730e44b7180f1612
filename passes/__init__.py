"""The passes. Each module registers one, a file or, where that grew long, a folder with its parts; `pipelines` several.

What several passes share is in `common`, and what those of XeTile share in `xetile`; no pass imports from another one.
"""

import importlib
import pkgutil


def load() -> None:
    """Import the modules of all passes, which register them."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
