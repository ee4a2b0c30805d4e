"""What the benchmarks share: the server, the clients, measuring and the table."""
