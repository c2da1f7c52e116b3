"""What MkDocs is asked to do besides: ``mkdocs.yml`` names this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from website import language_model_texts
from website.links import with_site_links
from website.navigation import with_folders
from website.paths import ROOT, ROOT_PAGES, file_address
from website.reference import with_commands


def on_config(config: Any) -> Any:
    config.nav = with_folders(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    for source, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # it has no neighbours in a column; the tabs lead on
    if page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"boost": 0.3}  # below the pages that say how to do something
    sources = {there: source for source, there in ROOT_PAGES.items()}
    path = page.file.src_uri
    return with_site_links(with_commands(markdown), sources.get(path, f"docs/{path}"), file_address())


def on_nav(nav: Any, **_: Any) -> None:
    language_model_texts.keep(nav)


def on_post_build(config: Any) -> None:
    language_model_texts.write(Path(config.site_dir), config.site_name)
