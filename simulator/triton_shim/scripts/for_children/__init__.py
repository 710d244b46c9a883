"""The folder that PYTHONPATH begins with in processes that a script starts; see `child_processes.py`."""
