"""What went wrong in a run, found in its recording or in a transcript of another agent."""
