"""The trace: the record as a graph that can be looked at."""
