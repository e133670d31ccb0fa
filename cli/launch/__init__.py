"""`archive launch`: a command for each launcher, the list of fleets, and their end."""
