"""Documents in parts, so that a revision costs what it changes."""
