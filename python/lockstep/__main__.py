# SPDX-License-Identifier: Apache-2.0
"""`python -m lockstep` and the command `lockstep` of the wheel: becomes the program, with the same arguments."""
from __future__ import annotations

import os
import sys

from . import program


def main() -> int:
    try:
        found = program.find()
        os.execve(found, ["lockstep", *sys.argv[1:]], program.environment())
    except program.LockstepError as error:
        print(f"lockstep: machine error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
