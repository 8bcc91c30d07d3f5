"""The HTTP API: one table of operations, from which routes and OpenAPI are generated."""
