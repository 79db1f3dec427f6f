"""Reading documents: requests, storage, freshness; rules written once, for use with and without an event
loop."""
