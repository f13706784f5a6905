"""`study plan`: which design a study should have, by simulation on people made up from what the study declares."""
