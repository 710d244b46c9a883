"""What runs inside of the answer's process: the answer is loaded and called, and what it does is written down.

Nothing here decides: the log goes to the judge, whose verdicts are in `cheats`.
"""
