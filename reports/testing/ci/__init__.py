"""What changed between two commits: their baselines side by side, as a page, as JSON, and as Markdown for a pull request."""
