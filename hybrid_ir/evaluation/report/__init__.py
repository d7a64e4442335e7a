"""A run as tables, plots and a page."""
