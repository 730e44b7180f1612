"""Extensions: capabilities around the core, one folder each, which can be read, tested and left out alone.

The core imports none of them. It finds them by the entry points of `xegpu_py.plugins`.
"""
