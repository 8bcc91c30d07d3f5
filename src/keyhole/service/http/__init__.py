"""HTTP: one table of operations, from which routing, access, metrics and OpenAPI follow."""
