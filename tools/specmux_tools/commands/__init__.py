"""Commands that read, judge and explain documents, one module each, imported when the command is run."""
