"""Personality: a recogniser of OCEAN traits in text, and how distinguishable characters are by it."""
