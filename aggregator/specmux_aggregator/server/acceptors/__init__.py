"""More processes for one listener: each answers what the service remembers, on connections handed to it."""
