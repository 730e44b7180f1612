"""The fidelity report: which chosen rules a run exercised, and whether its outputs depend on them.

It imports the core only. The core finds it by the entry point `fidelity`.
"""
