"""What a search found: shrunk, explained, written down."""
