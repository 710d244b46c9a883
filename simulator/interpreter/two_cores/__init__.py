"""Programs whose Cube part and Vector part run side by side: flags, tiles that pass, deadlocks."""
