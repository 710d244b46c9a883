"""Tables with the names of the vendor's profiler, so that scripts which read its files read ours; and a profile read back.

`units` gives times by core, `tables` makes the rows, `writing` the files, `reading` takes a measured PipeUtilization.csv and
`comparing` sets it beside a run. The columns are those of the profiler's public guide (msopprof, "Profile Data").
"""
