"""The seeded driver: whole runs of the bare engine from a stream of small choices."""
