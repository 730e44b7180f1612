"""What the passes of XeTile share."""
