"""Learning from all lists at once, and from one pass over them: batch rankers (A14)."""
