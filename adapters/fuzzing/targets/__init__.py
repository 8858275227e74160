"""A user's own agent, loaded and played through the real interpreter."""
