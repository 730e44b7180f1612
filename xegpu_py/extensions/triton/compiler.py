"""The compiler that Triton finds by the entry point group `triton.backends`."""

from xegpu_py.extensions.triton.backend import XeBackend

__all__ = ["XeBackend"]
