"""Precision studies: their rows, words and tables for every view."""
