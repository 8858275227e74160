"""The pure layers that keep the view small and valid."""
