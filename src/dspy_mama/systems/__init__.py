"""The published methods, one room each; they know nothing of one another."""
