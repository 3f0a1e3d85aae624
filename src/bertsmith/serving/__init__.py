"""A model that others ask over HTTP: one queue for every job, spoken to by the clients that people already have."""
