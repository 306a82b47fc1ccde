"""The documentation builds as a site, without a warning and without asking another host."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_site_builds_and_its_pages_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    if not importlib.util.find_spec("material"):
        pytest.skip("mkdocs-material is not installed: pip install -e '.[docs]'")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    pages = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.html")}
    assert {"index.html", "tutorials/my-module.html", "cli.html"} <= set(pages)
    loaded = r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//"
    assert [name for name, path in pages.items() if re.search(loaded, path.read_text())] == []
    menu = pages["index.html"].read_text()
    assert all(f'href="{name}"' in menu for name in pages if name not in ("index.html", "404.html"))
    index = (tmp_path / "search" / "search_index.json").read_text()
    assert all(f'"location":"{name}' in index for name in pages if name != "404.html")
