"""`python -m bertsmith` is `bertsmith`."""

from bertsmith.cli import main

if __name__ == "__main__":
    main()
