"""Sections that the text reports of several verbs share."""
