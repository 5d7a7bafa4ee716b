"""Which generations a dataset's folder holds, what each of them added, and where the files are that they name."""
