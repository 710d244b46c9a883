"""Modules of Triton that its own test suites import beside the language: helpers on the host, written anew."""
