"""A phone of the owner's, let in for a while. Rules: `phones`, `allowed`, `client_key`.

`onion`, `listener` and `state` do the I/O; `service` brings them together (docs/pairing.md, docs/decisions/0020)."""
