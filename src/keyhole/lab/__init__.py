"""Studies as data: what to play, how to judge it, what to draw."""
