"""The measure for all values of the limits: z3 over the second copy, CrossHair over the shipped step."""
