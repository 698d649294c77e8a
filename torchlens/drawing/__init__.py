"""From a trace to a picture."""
