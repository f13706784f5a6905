"""Planning a study: made-up people, the designs that are compared, their ranking, and the forecast."""
