"""Who may ask: callers proven by token or certificate, and what each may have."""
