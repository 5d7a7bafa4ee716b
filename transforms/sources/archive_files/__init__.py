"""The files of archives, tar and zip: their members in order, without unpacking, with the byte of what is damaged."""
