"""A metadata hook of hatchling: the URLs of the project, and the README as a package index shows it.

Links and pictures of README.md are relative, which is right in a checkout. A package index has none of the files, so
there they become absolute: the file in the repository at the tag of this version. The address of the repository is in
pyproject.toml; a build that is only a trial takes it from the variable FIREFLY_REPOSITORY. While nobody knows the
address, links become text and pictures are left out: no link of the package is dead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:!\[[^\]]*\]\([^)]*\)|[^\]])*)\]\((?!\w+:|#)(?P<path>[^)\s]+)\)")
ATTRIBUTE = re.compile(r"""(?P<name>\b(?:src|srcset|href))="(?!\w+:|#)(?P<path>[^"\s]+)\"""")


class PackageMetadata(MetadataHookInterface):  # type: ignore[misc] # hatchling is not installed for development
    def update(self, metadata: dict[str, Any]) -> None:
        values = {
            "repository": (os.environ.get("FIREFLY_REPOSITORY") or self.config["repository"]).rstrip("/"),
            "version": metadata["version"],
        }
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if not values["repository"]:
            readme = without_files(readme)
        else:
            file = self.config["file"].format(path="{path}", **values)
            picture = self.config["picture"].format(path="{path}", **values)
            readme = absolute(readme, file=file, picture=picture)
            metadata["urls"] = {
                "Source": values["repository"],
                "Documentation": file.format(path="docs/tutorial.md"),
                "Changelog": file.format(path="docs/changelog.md"),
                "Security": file.format(path="SECURITY.md"),
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def absolute(text: str, *, file: str, picture: str) -> str:
    """``text`` with absolute links, outside of fenced code; ``file`` and ``picture`` have ``{path}`` in them."""

    def link(found: re.Match[str]) -> str:
        address = (picture if found["picture"] else file).format(path=found["path"])
        return f"{found['picture']}[{LINK.sub(link, found['text'])}]({address})"

    def attribute(found: re.Match[str]) -> str:
        address = (file if found["name"] == "href" else picture).format(path=found["path"])
        return f'{found["name"]}="{address}"'

    return _outside_code(text, lambda part: ATTRIBUTE.sub(attribute, LINK.sub(link, part)))


def without_files(text: str) -> str:
    """``text`` without relative links and pictures, outside of fenced code. The text of a link stays."""

    def link(found: re.Match[str]) -> str:
        return "" if found["picture"] else LINK.sub(link, found["text"])

    return _outside_code(text, lambda part: LINK.sub(link, part))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
