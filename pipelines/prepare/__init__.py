"""From a config to what is ready to run: list, survey, plan, and leave out what is held or done already. No Beam."""
