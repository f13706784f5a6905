"""The part shared by peers and aggregators: studies, messages, encodings, mechanisms, credentials and protocols."""
