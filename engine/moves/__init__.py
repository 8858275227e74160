"""How each row changes the run: one short pure function a row."""
