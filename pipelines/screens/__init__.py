"""All that people see: data on stdout, everything else on stderr, the live line of a run, the page of `report`."""
