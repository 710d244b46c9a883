"""The page of a verdict on an answer."""
