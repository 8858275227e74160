"""One module a family of formats: how a file is recognised, and what its records mean."""
