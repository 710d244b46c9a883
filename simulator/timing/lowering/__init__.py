"""From operations of a tile program to instructions of pipes."""
