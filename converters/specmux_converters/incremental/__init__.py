"""Documents in parts, so that a revision costs only its changes."""
