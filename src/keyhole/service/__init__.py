"""The service ranks items, learns from delayed feedback and loses nothing.

``events`` defines the log's records, ``store`` persists them, ``engine`` decides which events to
append and folds them into rankers, ``group_commit`` batches the fsyncs, ``http`` answers requests,
``dashboard`` renders the pages.
"""
