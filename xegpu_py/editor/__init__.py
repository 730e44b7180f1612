"""What editors ask about a file: names, documentation, completions, formatting; and a language server that answers."""
