"""``stepfold prove``: what is asked, what is answered, and in which processes."""
