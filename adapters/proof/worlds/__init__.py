"""Which worlds are played against which limits."""
