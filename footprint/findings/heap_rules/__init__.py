"""Rules that read an allocator profile: each module is one rule."""
