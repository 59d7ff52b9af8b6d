"""Plain data that every part of footprint shares."""
