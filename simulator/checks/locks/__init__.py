"""Locks that programs take while they hold others."""
