"""Reading what is new, told about retention (spec §8)."""
