"""The aggregator's home: studies, enrolments, packets, secrets and backup."""
