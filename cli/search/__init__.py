"""`archive search`: its options, its live view, its trainers and its report."""
