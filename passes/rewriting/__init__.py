"""How a kernel is rewritten: rules and their driver, builders of ops, accesses of memory, exchange between lanes."""
