"""Commands of the service, one module each, imported when the command is run."""
