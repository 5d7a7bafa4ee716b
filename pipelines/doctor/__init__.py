"""What `shardmill doctor` looks at: Python, packages, disk, memory, Java, stores; what is missing, and for what.

Nothing but the standard library, rich and typer is imported at the top of these modules: the report must also be
printed where Arrow, numpy or a package of the core is missing.
"""
