"""Two things side by side: two runs (`runs`), or a run and what a profiler measured (`profile`); `pages` shows both."""
