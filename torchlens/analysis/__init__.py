"""Facts about the graph, each a pure function of a trace."""
