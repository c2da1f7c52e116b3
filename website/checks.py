"""Checks of the built site: it loads nothing from another host, has every public name, and can be read on a phone."""

from __future__ import annotations

import os.path
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "object": "data", "embed": "src"}
"""Elements that load something, and the attribute that says what. A ``link`` does so unless it says where a page is."""

_NO_LOADING = {"canonical", "prev", "next", "alternate", "edit", "me", "license"}
_ELSEWHERE = re.compile(r"(?:https?:)?//")
_SCHEME = re.compile(r"[a-z]+:|//")
_OF_STYLES = re.compile(r"url\(\s*['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*;")


def problems(site: Path, documented: set[str]) -> list[str]:
    """What is wrong with the site, in words; ``documented`` are the paths that the reference must have."""
    pages = {path.relative_to(site).as_posix(): _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    of_pages = [problem for name, page in pages.items() for problem in _wrong_with(site, name, page, pages)]
    return [*of_pages, *_loaded_by_styles(site), *_missing_names(site, documented), *_missing_texts(site, set(pages))]


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elsewhere: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.fits_a_phone = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.fits_a_phone |= tag == "meta" and given.get("name") == "viewport"
        loaded = given.get(_LOADING.get(tag, ""), "")
        if tag == "link" and given.get("rel") not in _NO_LOADING:
            loaded = given.get("href", "")
        if _ELSEWHERE.match(loaded):
            self.elsewhere.append(loaded)
        self.links += [link for link in (loaded, given.get("href", "")) if link and not _SCHEME.match(link)]


def _wrong_with(site: Path, name: str, page: _Page, pages: dict[str, _Page]) -> Iterator[str]:
    yield from (f"{name} loads {address}" for address in page.elsewhere)
    if not page.fits_a_phone:
        yield f"{name} does not say that it fits the width of a phone"
    if name == "404.html":  # its links begin at the root of a host
        return
    for link in sorted(set(page.links)):
        path, _, anchor = unquote(link).partition("#")
        aim = os.path.normpath(Path(name).parent / path) if path else name
        if not (site / aim).exists() or (anchor and aim in pages and anchor not in pages[aim].ids):
            yield f"{name} has a broken link to {link}"


def _loaded_by_styles(site: Path) -> Iterator[str]:
    for sheet in sorted(site.rglob("*.css")):
        yield from (f"{sheet.relative_to(site)} loads {found}" for found in _OF_STYLES.findall(sheet.read_text()))


def _missing_names(site: Path, documented: set[str]) -> Iterator[str]:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    yield from (f"the reference has no {name}" for name in sorted(documented - found))


def _missing_texts(site: Path, pages: set[str]) -> Iterator[str]:
    if not (site / "search" / "search_index.json").exists():
        yield "there is no index to search in"
    linked = set(re.findall(r"\]\(([^)]+\.html)\)", (site / "llms.txt").read_text()))
    yield from (f"llms.txt has no {page}" for page in sorted(pages - {"404.html"} - linked))
