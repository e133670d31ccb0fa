"""The page of a report: template, styles, script, and what fills them in."""
