"""Hooks of mkdocs.yml: the menu is that of docs/README.md; links that leave docs/ become text."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"^## (?P<title>.+)$")
_ITEM = re.compile(r"\[(?P<name>[^\]]+)\]\((?P<page>[^)#:]+\.md)\)")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def menu(index: str) -> list[dict[str, Any]]:
    """Sections and pages in the order of docs/README.md; a page stands where it comes first."""
    found: list[dict[str, Any]] = [{"Start": "README.md"}]
    seen = {"README.md"}
    pages: list[dict[str, str]] = []
    for line in index.splitlines():
        if heading := _HEADING.match(line):
            pages = []
            found.append({heading["title"]: pages})
        for item in _ITEM.finditer(line):
            if item["page"] not in seen and not item["page"].startswith(".."):
                seen.add(item["page"])
                pages.append({item["name"].replace("`", ""): item["page"]})
    return found


def inside(text: str, page: str) -> str:
    """`text` of a page; of links to files outside of docs/ the words stay, the path is a title."""

    def mend(link: re.Match[str]) -> str:
        target = link["target"]
        if "://" in target or target.startswith("#"):
            return link[0]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/"):
            return link[0]
        return f'<span title="{path}">{link["text"]}</span>'

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(mend, part) for part in parts)


def on_config(config: Any) -> Any:
    """Set the menu."""
    index = Path(config["docs_dir"], "README.md").read_text(encoding="utf-8")
    config["nav"] = menu(index)
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend the links of a page."""
    return inside(markdown, page.file.src_uri)
