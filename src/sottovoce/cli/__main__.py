"""``python -m sottovoce.cli``: the same as the ``sottovoce`` command."""

from sottovoce.cli import main

if __name__ == "__main__":
    main()
