"""Rankers of query-document lists."""
