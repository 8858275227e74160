"""Reading TOML so that every complaint names file, line, key and what is allowed."""
