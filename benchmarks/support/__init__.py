"""The common code of the benchmarks."""
