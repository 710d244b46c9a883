"""Sections of the page of a precision study."""
