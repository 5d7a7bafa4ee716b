"""What names, lists and the files of other tools state: splits, classes, columns that name pictures."""
