"""The record of a run: what it holds, how it is saved, loaded and checked."""
