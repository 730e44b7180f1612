"""vISA: the op list of a kernel as plain records, the table of its instructions, its text, and Intel's finalizer."""
