"""Input files, on a disk or in a store: paths, globs and URLs become a sorted listing; files are what was listed."""
