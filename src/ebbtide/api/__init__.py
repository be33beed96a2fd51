"""The HTTP door: parse, call `app`, answer. No logic."""
