"""RMS norm and its gradient."""
