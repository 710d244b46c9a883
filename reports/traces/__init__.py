"""Runs as traces for other people's viewers: Chrome's and Perfetto's JSON, and the dialect of MindStudio Insight.

`selection` chooses the instructions and puts them on one axis of microseconds, `perfetto` and `insight` name tracks and
write events, `writing` makes the file.
"""
