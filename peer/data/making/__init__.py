"""Making what packets say of the answers, by a deadline and away from every key."""
