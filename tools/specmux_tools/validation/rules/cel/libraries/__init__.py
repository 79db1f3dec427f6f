"""Functions of CEL, one module a library; ``releases`` says which release has which."""
