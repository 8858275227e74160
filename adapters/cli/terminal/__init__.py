"""What happens on the terminal: live output, JSON lines, questions, Ctrl+C."""
