"""An experiment as data, and the one way from there to the objects that are played."""
