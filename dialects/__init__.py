"""The dialects, a package each."""
