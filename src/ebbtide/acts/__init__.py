"""The one engine that carries out a removal, whoever owns what goes.

`act` says what is to be done and what came of it; `owner` who is asked; `engine` walks a set of acts, stage by stage;
`intents` and `recovery` keep the ledger true before, after and in spite of a crash.
"""
