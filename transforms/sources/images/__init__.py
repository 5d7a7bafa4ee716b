"""Folders of images as a source: millions of files listed by column, what folders mean, files' own bytes as rows."""
