"""PostgreSQL in front of the lake: chunks, their mirror, and the gate that nothing passes unproven (spec §6).

`server` and `table` look at the server, `setup` and `partitions` change it; `pgoutput`, `values` and `changes` turn its
log into Arrow, `mirror` brings that into the cold table; `digest`, `gate` and `drop` decide what may leave it.
"""
