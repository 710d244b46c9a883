"""Placeholder until lowering lands."""
