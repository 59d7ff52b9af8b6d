"""What the user named, resolved once: processes, programs, captures, texts and saved audits, their files."""
