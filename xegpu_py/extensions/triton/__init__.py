"""Stock Triton on a virtual Xe GPU: a backend that Triton finds by itself, and the lowering of its IR.

Triton imports this package with its own backends, so that nothing is imported here; `api` has the public names, which
are those of `xegpu_py.triton`. Imports the extension `profile`.
Imports the extension `portability`.
"""
