"""The protocol `masks`: exact sums without tellers, under masks that members open together."""
