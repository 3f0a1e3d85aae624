"""Several processes as one server: those that speak HTTP, those that hold models, and the one that watches."""
