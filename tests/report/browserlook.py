"""Looks at a page in a real browser: at three widths, light or dark, for overflow and contrast."""

from __future__ import annotations

import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
WIDTHS = (400, 900, 1600)

# Runs beside the page, in frames of three widths. Contrast is that of WCAG 2.1, level AA; what lies
# under a text of a picture is the last shape before it that holds the text's middle.
_PROBE = """<!DOCTYPE html><meta charset=utf-8><body><pre id=out>waiting</pre><script>
const colour = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, below, alpha) =>
  [0, 1, 2].map((at) => top[at] * alpha + below[at] * (1 - alpha));
const alphaOf = (parts) => parts.length > 3 ? parts[3] : 1;
const light = (rgb) => {
  const linear = (c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const [r, g, b] = rgb.map((c) => linear(c / 255));
  return .2126 * r + .7152 * g + .0722 * b;
};
const ratio = (a, b) => (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
const backdrop = (node, view) => {
  if (!node) return [255, 255, 255];
  const parts = colour(view.getComputedStyle(node).backgroundColor), alpha = alphaOf(parts);
  return alpha >= 1 ? parts : over(parts, backdrop(node.parentElement, view), alpha);
};
const under = (node, box, view) => {
  let below = backdrop(node.closest("svg").parentElement, view);
  const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  for (const shape of node.closest("svg").querySelectorAll("rect, circle")) {
    if (!(shape.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    const style = view.getComputedStyle(shape), fill = style.fill;
    const at = shape.getBoundingClientRect();
    if (fill === "none" || x < at.left || x > at.right || y < at.top || y > at.bottom) continue;
    const parts = colour(fill);
    below = over(parts, below, alphaOf(parts) * style.opacity * style.fillOpacity);
  }
  return below;
};
const pale = (page, view) => {
  const found = new Set(), walk = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim()) continue;
    if (["SCRIPT", "STYLE", "title"].includes(node.tagName)) continue;
    const range = page.createRange();
    range.selectNodeContents(walk.currentNode);
    const box = range.getBoundingClientRect(), style = view.getComputedStyle(node);
    if (!box.width || style.visibility === "hidden") continue;
    const picture = node.closest("svg");
    const scale = picture ? picture.clientWidth / picture.viewBox.baseVal.width : 1;
    const below = picture ? under(node, box, view) : backdrop(node, view);
    const parts = colour(picture ? style.fill : style.color);
    const ink = over(parts, below, alphaOf(parts) * style.opacity);
    const size = parseFloat(style.fontSize) * scale;
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const got = ratio(ink, below);
    if (got < (large ? 3 : 4.5)) {
      found.add(`${node.tagName}.${node.getAttribute("class") || ""} ${got.toFixed(1)}: `
        + walk.currentNode.data.trim().slice(0, 24));
    }
  }
  return [...found].slice(0, 30);
};
const meeting = (page) => [...page.querySelectorAll("svg")].flatMap((picture) => {
  const texts = [...picture.querySelectorAll("text")];
  const boxes = texts.map((node) => [node, node.getBoundingClientRect()]);
  return boxes.flatMap(([node, a], at) => boxes.slice(at + 1).filter(([, b]) =>
    a.width && b.width && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1
    && b.top < a.bottom - 1).map(([other]) => node.textContent + " / " + other.textContent));
});
const look = (frame) => {
  const page = frame.contentDocument, root = page.documentElement, view = frame.contentWindow;
  page.querySelectorAll("details").forEach((node) => { node.open = true; });
  const inside = (node) => node.closest(".scroll, .code, svg");
  const wide = [...page.querySelectorAll("body *")].filter((node) => !inside(node.parentElement)
    && node.getBoundingClientRect().right > root.clientWidth + 1);
  return {
    title: page.title, scroll: root.scrollWidth - root.clientWidth,
    sections: [...page.querySelectorAll("section")].map((node) => node.id),
    wide: wide.map((node) => node.tagName + "." + node.className),
    flat: [...page.querySelectorAll("svg, .l")].filter((node) => node.clientHeight < 8).length,
    lines: page.querySelectorAll(".l").length,
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    pale: pale(page, view), meeting: meeting(page), more: MORE(page),
  };
};
Promise.all(WIDTHS.map((width) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900; frame.style.border = 0;
  frame.onload = () => done(look(frame));
  frame.src = "page.html"; document.body.append(frame);
}))).then((seen) => { document.getElementById("out").textContent = JSON.stringify(seen); });
</script>"""


def look(page: Path, folder: Path, dark: bool, more: str = "null") -> list[dict[str, Any]]:
    """What each width shows; `more` is an expression over `page`, the frame's document.

    Fails where the page says anything on the console or asks for anything.
    """
    root = folder / "site"
    root.mkdir()
    shutil.copy(page, root / "page.html")
    probe = _PROBE.replace("WIDTHS", str(list(WIDTHS))).replace("MORE", f"((page) => {more})")
    (root / "probe.html").write_text(probe, encoding="utf-8")
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        mode = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        url = f"http://127.0.0.1:{server.server_port}/probe.html"
        done = start(url, folder / "profile", "--dump-dom", mode)
    finally:
        server.shutdown()
        server.server_close()
    found = re.search(r"<pre id=\"?out\"?>(.*?)</pre>", done.stdout, re.DOTALL)
    assert found and found[1] != "waiting", done.stdout[:500] + "\n".join(console(done))
    assert console(done) == []
    assert {path for path in asked if "favicon" not in path} == {"/probe.html", "/page.html"}
    seen: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return seen


def start(url: str, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the browser without a window."""
    assert CHROMIUM
    return subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0",
            "--virtual-time-budget=5000", "--window-size=1700,1000", *more, url,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the pages said there."""
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
