"""The lowering of TTIR to XeTile: the pass `tt-to-xetile`."""
