"""What can be asked over HTTP: one table of operations, from which routing and OpenAPI follow."""
