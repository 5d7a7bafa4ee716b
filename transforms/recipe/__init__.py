"""What happens to rows between reading and encoding: steps, in order, the same for every source of tables and images.

source ─▶ Rows ─▶ step ─▶ step ─▶ ... ─▶ Rows ─▶ encode

A step is a frozen dataclass (`step`); the recipe (`recipe`) runs them and does the bookkeeping.
"""
