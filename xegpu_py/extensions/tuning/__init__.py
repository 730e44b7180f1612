"""Search for the best kernel: spaces of configurations, and trials on one machine or a Dask cluster.

Imports the extension `profile`.
"""
