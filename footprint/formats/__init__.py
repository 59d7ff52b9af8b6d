"""Plain data in, text or bytes out: one module a format."""
