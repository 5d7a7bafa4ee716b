"""`python -m shardmill.pipelines` is the `shardmill` command."""

from .cli import main

if __name__ == "__main__":
    main()
