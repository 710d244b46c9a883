"""Views of what boards found out."""
