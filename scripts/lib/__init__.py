"""What scripts/structure is made of."""
