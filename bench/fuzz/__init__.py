"""Attacks on the library and the command line: docs/hardening.md explains them."""
