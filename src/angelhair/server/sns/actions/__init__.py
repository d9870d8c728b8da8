"""What is done: one function an action, through the service. Checked input comes in, a typed result goes out."""
