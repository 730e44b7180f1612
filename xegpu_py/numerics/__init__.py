"""Number formats and golden arithmetic on bit patterns, in numpy."""
