"""A candidate's files as a folder that can be built: `write_files(candidate, folder, chip)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from npusmith.bench.model import Candidate
from npusmith.errors import Place, TwinError
from npusmith.lang import legal
from npusmith.lower import BINDINGS, CONSTANTS, lower, plain_spec, write_project
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import find_chip
from npusmith.twin.formats import read_submission, unpack

_FENCE = re.compile(r"```(.*?)```", re.DOTALL)
_LANGUAGES = ("python", "cpp", "json")
_MOST_FILES, _MOST_BYTES, _MOST_NAME = 400, 32 << 20, 200


def write_files(candidate: Candidate, folder: Path, chip: str) -> str:
    """The file of a submission with a class; "" for an operator project, in `folder`/project.

    Raises NpusmithError for names that lead out of the folder, and for texts that are no program.
    """
    if candidate.format in ("json", "six"):
        text = only_text(candidate)
        text = text if text.startswith("{") else first_block(text)  # JSON may hold fences
        name = "submission.json" if candidate.format == "json" else "submission.py"
        (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        return name
    if candidate.format == "project":
        write_tree(candidate.files, folder / "project")
        return ""
    if candidate.format == "program":
        _lower(candidate, folder / "project", chip)
        return ""
    raise TwinError(
        "format-part", f"this suite's items take no candidate in the format {candidate.format}",
        seen=candidate.format,
    )  # fmt: skip


def export(candidate: Candidate, folder: Path, chip: str) -> None:
    """Write a candidate into a new folder as the files that its user wants: no answer, no fence."""
    if candidate.format in ("json", "six"):
        with temporary_folder("npusmith-export-") as name:
            submission = read_submission(Path(name) / write_files(candidate, Path(name), chip))
        folder.mkdir(parents=True)
        unpack(submission, folder)
    elif candidate.format == "program":
        _lower(candidate, folder, chip)
    else:
        write_tree(candidate.files, folder)


def only_text(candidate: Candidate) -> str:
    """The text of a format that has one file."""
    if len(candidate.files) != 1:
        raise TwinError(
            "format-part", f"the format {candidate.format} has one file",
            seen=", ".join(sorted(candidate.files))[:200] or "none",
        )  # fmt: skip
    return next(iter(candidate.files.values()))


def first_block(text: str) -> str:
    """The first fenced block of a model's answer, or all of it: MultiKernelBench's own reading."""
    found = _FENCE.search(text.strip())
    if not found:
        return text
    block = found.group(1).strip()
    for language in _LANGUAGES:
        if block.startswith(language):
            block = block[len(language) :].strip()
    return block


def write_tree(files: Mapping[str, str], folder: Path) -> None:
    """Write files below a new folder and nowhere else."""
    _check_names(files)
    folder.mkdir(parents=True)
    lay_out(files, folder)


def lay_out(files: Mapping[str, str], folder: Path) -> None:
    """The same in a folder that is there, and empty: nothing in it is a link."""
    _check_names(files)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        if path.suffix == ".sh":
            path.chmod(0o755)


def _check_names(files: Mapping[str, str]) -> None:
    """Nothing is written, not even the folder, where one name will not do."""
    if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_BYTES:
        raise TwinError("format-part", "the candidate has too many files", seen=f"{len(files)}")
    for name in files:
        parts = name.split("/")
        bad = any(part in ("", ".", "..") or not part.isprintable() for part in parts)
        if bad or "\\" in name or len(name) > _MOST_NAME:
            raise TwinError(
                "format-path", "a file of the candidate has a name that cannot be used",
                Place(""), seen=ascii(name)[:80],
            )  # fmt: skip


def _lower(candidate: Candidate, folder: Path, chip_name: str) -> None:
    """A tile program as the project that it becomes; a bindings.json beside it comes along."""
    programs = [name for name in candidate.files if name.endswith(".tile.py")]
    if len(programs) != 1:
        raise TwinError(
            "format-part", "the format program has one *.tile.py file",
            seen=", ".join(sorted(candidate.files))[:200] or "none",
        )  # fmt: skip
    chip = find_chip(chip_name)
    program = legal(candidate.files[programs[0]], programs[0], chip)
    write_project(lower(program, chip), chip, folder, plain_spec(program))
    for name in (BINDINGS, CONSTANTS):
        text = candidate.files.get(name)
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
