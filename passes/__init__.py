"""The passes, one file each."""

import importlib
import pkgutil


def load() -> None:
    """Import every pass, which registers it."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
