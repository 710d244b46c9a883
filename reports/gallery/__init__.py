"""Pictures for the README, made from real runs: `python -m ascendtile.reports.gallery`."""
