"""The command-line programs, one file each."""
