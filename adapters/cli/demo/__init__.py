"""What ``stepfold demo`` shows: a whole session with real files, then every way a run can go."""
