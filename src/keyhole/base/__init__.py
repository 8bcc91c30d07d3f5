"""What everything else rests on: errors, checks, files, threads, limits."""
