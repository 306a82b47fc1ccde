"""Rewrites what only the vendor's compiler accepts into plain C++, on the same lines.

- `k<<<blocks, dyn, stream>>>(args)` and `k<T><<<...>>>(args)` become a call of `twin::Direct`;
- `ACLRT_LAUNCH_KERNEL(k)(blocks, stream, args)` and `aclrtlaunch_k(blocks, ...)`, functions that
  the vendor's build makes, become a call of `twin::LaunchAcl`;
- `[host, aicore]` and `[aicore]` attributes vanish;
- a parameter that is marked `__kfc_workspace__` is what REGIST_MATMUL_OBJ finds as workspace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from npusmith.errors import Place, TwinError
from npusmith.twin import scan

_ATTRIBUTE = re.compile(r"\[\s*(?:host\s*,\s*)?aicore\s*\]")
_WORKSPACE = re.compile(r"\b__kfc_workspace__\b[^,(){};]*?\b(\w+)\s*(?=[,)])")
_ACL = re.compile(r"\b(?:ACLRT_LAUNCH_KERNEL\s*\(\s*(\w+)\s*\)|aclrtlaunch_(\w+))(\s*)\((?!\s*\))")
_ACL_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]aclrtlaunch_(\w+)\.h[">]', re.M)
_BODY = re.compile(r"(?:\s|#[^\n]*\n)*\{")  # behind the #endif of another head
_NO_DIRECTIVE = re.compile(r"^(?![ \t]*#).*$", re.M)
_NAME = re.compile(r"(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*$")


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch expression: offsets in the text and its parts as written."""

    start: int
    end: int
    kernel: str  # with template arguments
    blocks: str
    args: str


def has_launch(text: str) -> bool:
    """Does this text hold a launch?"""
    return bool(find_launches(text))


def find_launches(text: str, file: str = "") -> list[Launch]:
    """Every `<<<...>>>(...)` outside of comments and literals; TwinError launch-syntax."""
    code = scan.blank(text)
    return [_launch(text, code, match.start(), file) for match in re.finditer(r"<<<(?!<)", code)]


def rewrite(text: str, file: str = "", *, drop: bool = False) -> str:
    """The text as plain C++; lines stay lines.

    `drop`: the bodies of functions with launches become nothing. The launch functions at the end
    of many op_kernel files are for another way of building; they may name kernels that do not
    exist, and functions of the host that nothing declares there.
    """
    if drop:
        text = _without_launchers(text, file)
    for launch in reversed(find_launches(text, file)):
        call = "(void)0" if drop else _call(launch)
        lost = text.count("\n", launch.start, launch.end) - call.count("\n")
        text = text[: launch.start] + call + "\n" * lost + text[launch.end :]
    for match in reversed(list(_ACL.finditer(scan.blank(text)))):
        name, lines = match[1] or match[2], "\n" * match.group().count("\n")
        text = f"{text[: match.start()]}::twin::LaunchAcl(&::{name}, {lines}{text[match.end() :]}"
    code = scan.blank(text)
    for match in reversed(list(_ATTRIBUTE.finditer(code))):
        text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    return _take_workspaces(text)


def _without_launchers(text: str, file: str) -> str:
    """Blanks what stands between the braces of each function with a launch, but directives; lines
    stay lines."""
    code = scan.blank(text)
    for launch in reversed(find_launches(text, file)):
        body = _body_around(code, launch.start)
        if body:
            start, end = body
            text = text[:start] + _NO_DIRECTIVE.sub("", text[start:end]) + text[end:]
            code = scan.blank(text)
    return text


def _body_around(code: str, at: int) -> tuple[int, int] | None:
    """From behind the `{` to the `}` of the function around a place: the outermost braces that
    follow a head's `)`."""
    open_: list[int] = []
    for brace in re.finditer(r"[{}]", code[:at]):
        if brace.group() == "{":
            open_.append(brace.start())
        elif open_:
            open_.pop()
    heads = (start for start in open_ if code[:start].rstrip().endswith(")"))
    start = next(heads, -1)
    end = scan.closing(code, start) if start >= 0 else -1
    return (start + 1, end) if end >= 0 else None


def launch_headers(text: str) -> list[str]:
    """The kernels whose launch functions a source includes, from headers of the vendor's build."""
    return _ACL_HEADER.findall(scan.blank(text, strings=False))


def mark_workspaces(text: str, tiling: bool) -> str:
    """A source that is built with HAVE_WORKSPACE: each kernel's last argument is the workspace, or
    the one before it where the last is the `tiling`; the kernel sees the user's part of it."""
    code = scan.blank(text)
    for entry in reversed(scan.find_entries(code)):
        at = -2 if tiling else -1
        names = entry.param_names
        end = scan.closing(code, code.index("(", entry.offset))
        body = _BODY.match(code, end + 1) if end >= 0 and len(names) >= -at else None
        if body:
            take = f" ::twin::TakeWorkspace({names[at]});"
            text = text[: body.end()] + take + text[body.end() :]
    return text


def _take_workspaces(text: str) -> str:
    """Each kernel with a marked parameter begins by handing it to the runtime."""
    code = scan.blank(text)
    for match in reversed(list(_WORKSPACE.finditer(code))):
        end = code.find(")", match.end())
        body = _BODY.match(code, end + 1) if end >= 0 else None
        if body:
            take = f" ::twin::SetWorkspace((void *)({match[1]}));"
            text = text[: body.end()] + take + text[body.end() :]
    return text


def _call(launch: Launch) -> str:
    parts = [launch.blocks, launch.kernel, *([launch.args] if launch.args else [])]
    return f"::twin::Direct({', '.join(parts)})"


def _launch(text: str, code: str, opening: int, file: str) -> Launch:
    closing = _closing_chevrons(code, opening + 3)
    after = re.compile(r"\s*\(").match(code, closing + 3) if closing >= 0 else None
    end = scan.closing(code, after.end() - 1) if after else -1
    start = _kernel_start(code, opening)
    config = scan.split_args(text[opening + 3 : closing], angles=False)
    if after is None or end < 0 or start < 0 or not config:
        raise TwinError(
            "launch-syntax",
            "a <<<...>>> that is not a launch",
            Place(file, scan.line_of(text, opening)),
            seen=text[opening : opening + 60].split("\n")[0],
        )
    return Launch(
        start, end + 1, text[start:opening].strip(), config[0], text[after.end() : end].strip()
    )


def _closing_chevrons(code: str, start: int) -> int:
    """The `>>>` that ends a launch configuration; those inside brackets do not count."""
    depth = 0
    for at in range(start, len(code)):
        letter = code[at]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == ";":
            return -1
        elif depth == 0 and code.startswith(">>>", at) and not code.startswith(">>>>", at):
            return at
    return -1


def _kernel_start(code: str, opening: int) -> int:
    """Where the kernel's name begins, template arguments included."""
    head = code[:opening].rstrip()
    if head.endswith(">"):
        depth = 0
        for at in range(len(head) - 1, -1, -1):
            depth += {">": 1, "<": -1}.get(head[at], 0)
            if depth == 0:
                head = head[:at]
                break
    found = _NAME.search(head)
    return found.start() if found else -1
