"""Portability: one verdict for a kernel on all GPUs. Imports the extension `profile`."""
