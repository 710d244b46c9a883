"""What of memory and of buffers was written: loads of what nobody wrote, writes that nobody reads."""
