"""Archives of pictures as a source: members of one key become a row, with their pictures, text and fields."""
