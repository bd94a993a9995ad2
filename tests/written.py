# SPDX-License-Identifier: MIT
"""Tables in the documents that programs write: what is between two markers,

    <!-- NAME: written by make TARGET -->
    <!-- end of NAME -->
"""

import re


def write(document, name, text):
    """Put the text between the markers of that name in a file; whoever has no file gives None."""
    if document is None:
        return
    old = document.read_text()
    name = re.escape(name)
    new, found = re.subn(
        rf"(?ms)^(<!-- {name}: written by [^\n]*-->\n).*?^(<!-- end of {name} -->)$",
        lambda match: f"{match[1]}{text.rstrip()}\n{match[2]}", old)
    if found != 1:
        raise ValueError(f"{document} has {found} places for {name}")
    document.write_text(new)
