"""Trained models for Palaver. There is no code here: `palaver.models.catalogue` finds the folders."""
