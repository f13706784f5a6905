"""The protocol `groups`: models of groups of members, which are drawn anew in each aggregation, without tellers."""
