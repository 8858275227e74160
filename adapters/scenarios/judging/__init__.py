"""What is checked: what the file expects, and what always holds."""
