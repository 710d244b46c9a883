"""Layer norm."""
