"""What the pages of npusmith share: their style, their scripts, and the policy that names both.

A page is one file without a request to anywhere. Its Content-Security-Policy allows exactly the
style sheet and the script that stand in it, by their hashes; text of strangers is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from npusmith.report.text import figure, plain, size

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Assets:
    """The style sheet and the script of a page, as they stand in it."""

    style: str
    script: str

    @property
    def policy(self) -> str:
        """The page's policy: nothing but these two, and no request."""
        allowed = f"style-src '{_hash(self.style)}'; script-src '{_hash(self.script)}'"
        return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def assets(styles: Sequence[Path], scripts: Sequence[Path]) -> Assets:
    """The shared style sheets and these; each script runs on its own."""
    shared = (_HERE / "style.css", _HERE / "picture.css")
    style = "".join(path.read_text(encoding="utf-8") for path in (*shared, *styles))
    texts = (path.read_text(encoding="utf-8") for path in scripts)
    return Assets(style, "".join(f"{{\n{text}}}\n" for text in texts))


def script(name: str) -> Path:
    """A script of this folder."""
    return _HERE / f"{name}.js"


def environment(folder: Path, more: Mapping[str, Callable[..., Any]]) -> Environment:
    """Templates of that folder and of this one, with the filters of all pages and these."""
    made = Environment(
        loader=FileSystemLoader([folder, _HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"figure": figure, "plain": plain, "size": size, **more}
    return made


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
