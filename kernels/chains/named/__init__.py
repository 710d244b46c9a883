"""The chains that come with this package: every module has a `CHAIN`."""
