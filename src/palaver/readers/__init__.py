"""Readers, one for each noun: every command reads its files through them."""
