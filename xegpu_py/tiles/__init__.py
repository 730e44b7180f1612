"""Arrays, element types, values, and the functions and operators on them, from which front ends build XeTile.

The tile language is Python's syntax on top of them.
"""
