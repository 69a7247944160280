"""Tiewise."""
