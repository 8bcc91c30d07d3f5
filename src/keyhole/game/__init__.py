"""Games: rankers meet worlds, are shown what a reveal shows, and are judged by a measure."""
