"""Templates, style sheet and scripts of the HTML reports: data, no code."""
