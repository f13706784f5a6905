"""Posts that become decisions, in batches."""
