"""`python -m npusmith` is the same as `npusmith`."""

from npusmith.cli.main import main

if __name__ == "__main__":
    main()
