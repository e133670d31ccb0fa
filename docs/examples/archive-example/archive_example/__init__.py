"""An agent, a kernel, a space, a task and an observer for the Architecture Archive."""
