"""Archives of pictures, tar and zip: read in the order of their members, and never unpacked."""
