"""What speaks HTTP: one door for every request, limits, errors in each client's own shape, logs and metrics."""
