"""What pages and pictures share: figures, names and sentences of a record."""
