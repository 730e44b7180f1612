"""Random programs at every level, run on the engines and the reference evaluator; see docs/testing.md.

Each generator is a function of a `random.Random` that returns a `Program`. With hypothesis' `Random` it is a strategy
whose failures shrink; with Python's `Random` it is fast.
"""
