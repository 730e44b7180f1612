"""The engines that run a `visa.Program`: the interpreter, which defines what is right."""
