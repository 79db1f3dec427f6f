"""Pages about one document, or two: of a kind, a type, a group-version, and two versions of a kind."""
