"""Documents in files: of folders, bundles and git revisions."""
