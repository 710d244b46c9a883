"""The judge of answers to tasks: values, cheats, time and fit of a kernel that somebody else wrote."""
