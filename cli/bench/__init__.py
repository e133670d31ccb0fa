"""`archive bench`: a module for each comparison of searches, and one for the speed of the parts."""
