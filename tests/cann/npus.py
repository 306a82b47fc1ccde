"""What a machine with an NPU has besides its toolkit, as stubs: torch_npu, a binding, msprof.

Tensors stay on the CPU; the binding is a torch.library operator in Python that its setup.py
"builds"; msprof runs its program and leaves a recorded table.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolkits import environment, make_toolkit

from npusmith.cann.caller import Machine
from npusmith.cann.device import find_machine

TORCH_NPU = """
import types
import torch
torch.Tensor.npu = lambda self: self
torch.npu = types.SimpleNamespace(
    set_device=lambda number: None, synchronize=lambda: None,
    get_device_name=lambda number: "Ascend910B2",
)
"""
# Needs what the installer and the environment must give it; `BODY` is the operator.
SETUP = '''
import os, sys
from pathlib import Path
where = Path(sys.argv[sys.argv.index("--build-lib") + 1])
assert sys.argv[1] == "build_ext"
assert (Path(os.environ["ASCEND_CUSTOM_OPP_PATH"].split(":")[0]) / "op_api" / "lib").is_dir()
where.mkdir(parents=True)
(where / "custom_ops_lib.py").write_text("""
import os, torch
space = torch.library.Library("custom_ops_lib", "DEF")
space.define("NAME(Tensor x) -> Tensor")
calls = []
def run(x):
    calls.append(x)
    BODY
space.impl("NAME", run, "CompositeExplicitAutograd")
""")
'''
MSPROF = """#!/bin/bash
echo "msprof $*" >> "$CALLS"
for word in "$@"; do case "$word" in
    --application=*) program="${word#*=}";; --output=*) out="${word#*=}";;
esac; done
$program || exit 1
made="$out/PROF_000001_20260101/mindstudio_profiler_output"
mkdir -p "$made" && cp "$TABLE" "$made/op_summary_20260101100000.csv"
"""


def make_machine(root: Path, table: Path | None = None, *, torch: bool = True) -> Machine:
    """A machine with device 0; `table`: what msprof leaves."""
    home = make_toolkit(root, asc=True)
    packages = root / "packages"
    packages.mkdir()
    if torch:
        (packages / "torch_npu.py").write_text(TORCH_NPU)
    if table is not None:
        msprof = home / "tools" / "profiler" / "bin" / "msprof"
        msprof.parent.mkdir(parents=True)
        msprof.write_text(MSPROF)
        msprof.chmod(0o755)
    nodes = root / "dev"
    nodes.mkdir()
    (nodes / "davinci0").touch()
    paths = os.pathsep.join([str(packages), *sys.path])
    given = environment(home, root / "calls", PYTHONPATH=paths, TABLE=str(table))
    return find_machine(0, given, nodes)


def bind_stub(project: Path, name: str, body: str) -> None:
    """Replaces the project's setup.py by one whose operator does `body`."""
    text = SETUP.replace("NAME", name).replace("BODY", body)
    (project / "setup.py").write_text(text)
