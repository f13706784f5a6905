"""The forms of models that every protocol may publish: tables, and weights of columns."""
