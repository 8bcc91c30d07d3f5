"""Query-document lists in LETOR and SVMLight files."""
