"""What flows between the loop, its tasks and its consumer: inbox, channel, deadlines, threads."""
