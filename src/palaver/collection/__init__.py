"""Collecting conversations: people are paired, talk, annotate, and leave paid."""
