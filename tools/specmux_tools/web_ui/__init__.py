"""The web UI: jobs of the reader process that end in a page."""
