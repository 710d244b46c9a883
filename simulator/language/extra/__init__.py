"""Words that exist on one vendor's hardware only."""
