"""`python -m springhouse` is the command `springhouse`."""

from springhouse.cli import main

if __name__ == "__main__":
    main()
