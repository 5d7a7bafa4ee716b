"""Arrow columns of any layout, nested ones too, as exact, flat values of features, or as problems of cells."""
