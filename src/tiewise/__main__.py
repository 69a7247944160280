"""``python -m tiewise`` is ``tiewise``."""

from tiewise.cli import main

if __name__ == "__main__":
    main()
