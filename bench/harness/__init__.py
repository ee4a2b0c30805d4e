"""Shared parts of the benchmarks: the server, the clients, measuring and the table."""
