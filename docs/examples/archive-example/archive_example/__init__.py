"""An agent, a kernel, a space, a builder, a task and an observer for the Architecture Archive."""
