"""Editor support: names, documentation, completions and formatting of a file, and the language server."""
