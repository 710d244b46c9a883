"""Precision studies: their rows, words, JSON and tables for every view."""

from .json_form import study_json, sweep_json

__all__ = ["study_json", "sweep_json"]
