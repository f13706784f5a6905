"""What `simulate` is made of: people from a file, exact draws of aggregates, one study's run, ceilings."""
