"""Random programs at every level, and the comparison of all that can run them; see docs/testing.md.

Each generator is a function of a `random.Random` that gives a `Program`. With hypothesis' own `Random` it is a strategy
whose failures shrink; with Python's it is fast.
"""
