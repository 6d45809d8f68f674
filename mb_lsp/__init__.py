"""What a person touches: the language server, its jobs and edits, and the command line."""
