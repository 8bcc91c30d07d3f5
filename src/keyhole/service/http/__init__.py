"""The HTTP stack: connections, the way of a request, pages around the dashboard."""
