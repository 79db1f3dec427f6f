"""Path items with their operations, parameters, bodies, responses, security and servers."""
