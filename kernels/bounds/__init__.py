"""Closed-form bounds that operators share."""
