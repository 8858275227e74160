"""Small scenarios that together take all seven continues and come to all ten ends (docs/scenarios.md)."""
