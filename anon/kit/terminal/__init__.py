"""Parts that the command lines of both sides share."""
