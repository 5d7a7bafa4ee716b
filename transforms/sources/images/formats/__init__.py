"""What an image is by its bytes, a module for each format, mostly without decoding; Pillow where pixels are wanted."""
