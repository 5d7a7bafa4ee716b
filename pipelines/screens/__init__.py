"""All that people see: data on stdout, everything else on stderr, and the live line of a run (`progress`)."""
