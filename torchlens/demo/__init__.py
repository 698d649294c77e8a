"""Small built-in models for first pictures."""
