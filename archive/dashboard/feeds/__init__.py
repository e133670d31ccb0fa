"""What changes while a page is open: studies, one study, workers.

Each feed is read once for all browsers.
"""
