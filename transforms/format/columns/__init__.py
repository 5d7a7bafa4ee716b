"""Arrow columns of any layout as exact, flat values of features; every cell that has none is a named problem."""
