"""Build and run any Ascend C operator project on the CPU, every hardware rule checked.

`read_project(root)` -> `build(project, chip, dtypes)` -> `run(build, inputs, outputs, attrs)`;
`check_source(path, chip)` only compiles. docs/project.md says which projects are accepted.
"""

from npusmith.twin.check import check_source
from npusmith.twin.compile import Build, build
from npusmith.twin.diagnose import CompileError
from npusmith.twin.finding import Finding
from npusmith.twin.launch import LaunchOptions, Run, run
from npusmith.twin.project import Project, read_project

__all__ = [
    "Build",
    "CompileError",
    "Finding",
    "LaunchOptions",
    "Project",
    "Run",
    "build",
    "check_source",
    "read_project",
    "run",
]
