"""Trained models for Palaver. There is no code here: `palaver.models.shipped` finds the folders."""
