"""What is done with a queue's history: each a job that can be stopped at any point and run again."""
