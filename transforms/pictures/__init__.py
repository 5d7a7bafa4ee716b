"""What a picture is by its bytes, mostly without decoding, a module for each format; Pillow where pixels are wanted."""
