"""The HTTP stack: connections, middleware, endpoints, and login to the dashboard."""
