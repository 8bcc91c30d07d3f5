"""The version of the package, which every spec and result carries."""

__version__ = "0.1.0"
