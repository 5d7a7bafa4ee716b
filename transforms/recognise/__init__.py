"""Recognise what files are before any reader opens them: by their paths, and the first bytes of a few."""
