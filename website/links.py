"""Links of the pages, as they are right on the site.

In the repository a page links to other files by their relative paths, which a code host and an editor understand. On
the site README.md is the start page, and files that are no pages are in the repository only.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from website.paths import DOCS, ROOT, ROOT_PAGES

_CODE = re.compile(r"(^```.*?^```$|``.+?``|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<start>!?\[(?P<text>(?:\x00\d+\x00|[^\]\x00])*)\]\()(?P<target>[^)\s]+)\)")
_ATTRIBUTE = re.compile(r"""(?P<start>\b(?:src|srcset|href)=")(?P<target>[^"\s]+)(?=")""")


def with_site_links(markdown: str, page: str, file_address: str | None) -> str:
    """The text of a page, whose path in the repository is ``page``, with links that are right on the site."""
    codes: list[str] = []

    def put_aside(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\x00{len(codes) - 1}\x00"

    def link(found: re.Match[str]) -> str:
        target = _target(found["target"], page, file_address)
        return found["text"] if target is None else f"{found['start']}{target})"

    def attribute(found: re.Match[str]) -> str:
        target = _target(found["target"], page, file_address)
        return found[0] if target is None else f"{found['start']}{target}"

    text = _CODE.sub(put_aside, markdown)
    text = _ATTRIBUTE.sub(attribute, _LINK.sub(link, text))
    return re.sub(r"\x00(\d+)\x00", lambda found: codes[int(found[1])], text)


def _target(target: str, page: str, file_address: str | None) -> str | None:
    """The target on the site; ``None`` if the site does not have it and nobody knows the address of the repository."""
    path, _, fragment = target.partition("#")
    if not path or re.match(r"\w+:", target):
        return target
    aim = os.path.normpath(ROOT / Path(page).parent / path)
    found = Path(aim).relative_to(ROOT).as_posix() if Path(aim).is_relative_to(ROOT) else None
    if found is None or not Path(aim).exists():
        return target  # MkDocs says that it is broken
    if Path(aim).is_relative_to(DOCS) and not Path(aim).is_dir():
        there = Path(aim).relative_to(DOCS).as_posix()
    elif found in ROOT_PAGES:
        there = ROOT_PAGES[found]
    else:
        return None if file_address is None else file_address.format(path=found)
    relative = os.path.relpath(there, Path(place_of(page)).parent)
    return f"{relative}#{fragment}" if fragment else relative


def place_of(page: str) -> str:
    """The path of a page on the site, from its path in the repository."""
    return ROOT_PAGES.get(page) or Path(page).relative_to("docs").as_posix()
