"""What footprint asks of its own system: files, rights, limits of work, processes of its own."""
