"""`archive trainer`: its options, and tables of the trainers of an archive."""
