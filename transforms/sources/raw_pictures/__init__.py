"""Files of pixels in records of one size, IDX (MNIST) and CIFAR's binary files: each record becomes a PNG picture."""
