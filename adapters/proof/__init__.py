"""What is proved of the engine: a second copy of the machine, an explorer, a proof of the measure."""
