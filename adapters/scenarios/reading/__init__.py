"""From a TOML file to a scenario; every complaint names file, line, key and what is allowed."""
