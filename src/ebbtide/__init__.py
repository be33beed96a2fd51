"""Retention, tiering and provable erasure for the lakehouse."""
