"""Showing an audit: facts in, text out. Nothing here reads a file or asks the system."""
