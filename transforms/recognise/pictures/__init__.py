"""What folders of pictures mean: splits, classes, and boxes in files beside them."""
