"""The shapes that clients know, one file each: what is sent becomes a job, what comes back their JSON."""
