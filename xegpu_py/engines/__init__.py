"""The engines that run a `visa.Program`: the interpreter, which defines the correct result."""
