"""Automatic metrics of responses: overlap and diversity."""
