"""Whether results have the same bits, as a page and as JSON."""
