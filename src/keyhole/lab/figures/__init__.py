"""How results are drawn and tabulated."""
