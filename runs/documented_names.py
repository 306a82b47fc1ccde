"""Names that the vendor's API reference has for Atlas A2 and the twin lacks.

    python runs/documented_names.py --docs CHECKOUT/docs/zh/api [--write]

CHECKOUT is one of asc-devkit. A page counts when its table of products says that Atlas A2 is
supported, or when it has none, as pages of host functions; its names are those of the functions,
classes, structs and enums that its prototypes declare. Nothing but names is taken. `--write` puts
them into src/npusmith/target/unmodelled.txt, which `npusmith.target.absent.explain` reads; without
it they are printed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from npusmith.target.absent import ABSENT, UNMODELLED
from npusmith.target.chips import find_chip
from npusmith.twin.toolchain import INCLUDE, find_toolchain

_UMBRELLAS = ("kernel_operator.h", "tiling/tiling_api.h", "register/op_def_registry.h")

_SUPPORTED = re.compile(r"Atlas A2 训练系列产品.{0,40}(?:：\s*支持|\|\s*√)")
_PRODUCTS = "产品支持情况"  # the heading of that table; pages of host functions have none
_BLOCK = re.compile(r"^\s*```[^\n]*\n(.*?)^\s*```", re.S | re.M)
_PROTOTYPES = re.compile(
    r"^##+ *(?:函数原型|定义原型|结构体定义|宏函数原型)[^\n]*\n(.*?)(?=^## |\Z)", re.S | re.M
)
_DECLARED = re.compile(
    r"(?:__aicore__|\binline)\b[\w\s:<>,&*]*?\b(\w+)\s*\("
    r"|^\s*(?:bool|void|u?int\d*_t|auto|ge::graphStatus)\s+(\w+)\s*\("
    r"|\b(?:class|struct|enum\s+class|enum)\s+(\w+)\s*[{:]",
    re.M,
)
_SCRATCH = re.compile(r"Get(\w+?)(?:MaxMinTmpSize|TmpBufferFactorSize)$")
_OF_TYPE = re.compile(r"^(?:operator|Get|Set|Init|Process|Kernel\w*|\w*Custom\w*|[a-z_0-9]+)$")


def documented(docs: Path) -> set[str]:
    """The names of all pages for Atlas A2."""
    found: set[str] = set()
    for page in sorted(docs.rglob("*.md")):
        text = page.read_text(errors="replace")
        if _SUPPORTED.search(text) or _PRODUCTS not in text:
            found.update(_names(text))
    return {name for name in found if len(name) > 2 and not _OF_TYPE.match(name)}


def _names(text: str) -> Iterator[str]:
    for section in _PROTOTYPES.findall(text):
        for block in _BLOCK.findall(section):
            for match in _DECLARED.finditer(block):
                yield next(filter(None, match.groups()))


def known() -> set[str]:
    """Every word of the twin's headers, as written and with macros expanded, and what is told as
    absent."""
    chain = find_toolchain(find_chip("910B2"))
    includes = "".join(f'#include "{name}"\n' for name in _UMBRELLAS)
    command = [chain.compiler.path, "-std=c++17", "-E", "-P", f"-I{chain.folder}", f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command, "-x", "c++", "-"], input=includes, capture_output=True, text=True, check=True
    )
    texts = [done.stdout, *(file.read_text() for file in INCLUDE.rglob("*.h"))]
    words = {row.name for row in ABSENT}
    return words.union(*(re.findall(r"\w+", text) for text in texts))


def _of_absent(name: str) -> bool:
    """Scratch of a function that this chip lacks anyway."""
    found = _SCRATCH.match(name)
    return found is not None and any(found[1] in (row.name, f"{row.name}s") for row in ABSENT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    names = documented(args.docs)
    lacking = sorted(name for name in names - known() if not _of_absent(name))
    if args.write:
        UNMODELLED.write_text("\n".join(lacking) + "\n")
    print(*lacking, sep="\n")
    print(f"\n{len(names)} documented for Atlas A2, {len(lacking)} of them lacking")


if __name__ == "__main__":
    main()
