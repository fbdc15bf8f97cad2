"""Kafka: what every client is set up with, and the topics that must be there."""
