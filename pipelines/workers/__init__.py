"""The workers of this machine, threads or processes: they plan, and they stage tasks while an engine drives."""
