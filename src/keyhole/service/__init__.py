"""The service: rank, later feedback, nothing lost.

``events`` says what the log holds, ``store`` keeps it, ``engine`` decides what is appended and
folds it into rankers, ``desk`` commits in groups, ``http`` answers requests, ``dashboard`` shows.
"""
