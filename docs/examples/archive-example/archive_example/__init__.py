"""An agent, a kernel, a space and a task for the Architecture Archive."""
