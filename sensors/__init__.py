"""Sensors: what leads and starts the harvest."""
