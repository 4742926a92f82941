# SPDX-License-Identifier: Apache-2.0
"""A page that the program wrote, inside a notebook."""
from __future__ import annotations

import html
import pathlib


def frame(page: pathlib.Path, height: int = 620) -> str:
    """The page in a frame of its own: its styles and scripts stay apart from the notebook's."""
    return (f'<iframe srcdoc="{html.escape(page.read_text(), quote=True)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{height}px;border:1px solid #8884"></iframe>')
