"""Modules of scripts/structure."""
