"""Who harvests: candidates that Kafka chooses from, and the lease that fences with its choice."""
