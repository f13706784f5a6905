"""Making a window's packets: `inputs` (all that they are made from), `making` (the steps, by a deadline), and `letters`
(where members write to each other)."""
