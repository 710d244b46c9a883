"""Group norm and its gradient."""
