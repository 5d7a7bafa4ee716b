"""The steps for columns of pictures: what is in them, and the objects that a table says are in them."""
