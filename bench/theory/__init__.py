"""What only tests and studies of the theory need: adversaries, constants, coverage."""
