"""Helpers that the passes on XeTile share."""
