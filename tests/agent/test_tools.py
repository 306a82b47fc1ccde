"""What a call to the server of tools may name: nothing outside of the root, no endpoint, no key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agentcases import TASK

from npusmith.agent.tools import Tools
from npusmith.errors import NpusmithError

HOST = """
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context) { return ge::GRAPH_SUCCESS; }
}
namespace ops {
class K : public OpDef {
public:
    explicit K(const char *name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TilingFunc);
    }
};
OP_ADD(K);
}
"""
OWN = "model=m,base-url=http://localhost:1/v1,key-env=OWN_KEY"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "task.py").write_text(TASK)
    (tmp_path / "secret.h").write_text("int secret;\n")
    (tmp_path / "secret.json").write_text("{}")
    return folder


def refused(root: Path, name: str, options: str = "", /, **given: Any) -> str:
    with pytest.raises(NpusmithError) as caught:
        getattr(Tools("910B2", "", root, options), name)(**given)
    return caught.value.code


@pytest.mark.parametrize(
    "options",
    [
        "model=m,base-url=http://elsewhere/v1",
        "model=m,key-env=AWS_SECRET_ACCESS_KEY",
        "key-env=PATH,samples=1",
        "model=litellm:elsewhere/m",
        "base-url=",
    ],
)
@pytest.mark.parametrize("started", ["", OWN])
def test_a_call_names_no_endpoint_and_no_key(root: Path, options: str, started: str) -> None:
    given = {"task": "task.py", "out": "o", "options": options}
    assert refused(root, "generate", started, **given) == "option-denied"
    assert not (root / "o").exists()


def test_a_call_has_the_server_s_endpoint_and_its_own_terms(root: Path) -> None:
    setting, _ = Tools("910B2", "", root, OWN)._settled("samples=3,model=other")
    assert (setting.choice.base_url, setting.choice.key_name) == (
        "http://localhost:1/v1",
        "OWN_KEY",
    )
    assert (setting.choice.model, setting.terms.samples) == ("other", 3)
    same, _ = Tools("910B2", "", root, OWN)._settled(OWN)
    assert same.choice.base_url == setting.choice.base_url


def test_links_that_lead_out_are_refused(root: Path) -> None:
    (root / "linked.py").symlink_to(root / "task.py")
    (root / "out.py").symlink_to(root.parent / "secret.h")
    (root / "far").symlink_to(root.parent)
    assert refused(root, "check", path="out.py") == "file-denied"
    assert refused(root, "check", path="far/secret.h") == "file-denied"
    assert refused(root, "run", project="far") == "file-denied"
    assert refused(root, "profile", project="task.py", task="far/x.py") == "file-denied"
    assert refused(root, "generate", task="task.py", out="far/o") == "file-denied"
    (root / "bare").symlink_to(root.parent / "secret.h")  # nothing is called bare.*
    for task in ("out.py:Block", "bare:Block", "far/x.py:Block"):
        assert refused(root, "generate", task=task, out="o") == "file-denied"


def test_data_beside_a_task_is_no_way_out(root: Path) -> None:
    """Whoever may write into the root links to what lies outside, and has the task read it."""
    (root.parent / "secret.json").write_text("canary of a file")
    (root / "task.json").symlink_to(root.parent / "secret.json")
    kernel = 'extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {}\n'
    (root / "k.cpp").write_text(f'#include "kernel_operator.h"\n{kernel}')
    reads = "open(__file__.removesuffix('.py') + '.json').read()"
    (root / "task.py").write_text(f"{TASK}\n\nraise RuntimeError({reads})\n")
    for name, given in (
        ("language", {"task": "task.py"}),
        ("attempt", {"task": "task.py", "text": "x"}),
        ("generate", {"task": "task.py", "out": "o"}),
        ("run", {"project": "k.cpp", "task": "task.py"}),
    ):
        with pytest.raises(NpusmithError) as caught:
            getattr(Tools("910B2", "", root), name)(**given)
        said = f"{caught.value} {caught.value.seen}"
        assert caught.value.code == "task-denied" and "canary" not in said, name


def test_a_text_reads_nothing_that_lies_on_this_machine(root: Path) -> None:
    secret = root.parent / "secret.h"
    secret.write_text("canary_of_a_file 7\n")
    source = f'#include "{secret}"\n#include "kernel_operator.h"\n'
    source += 'extern "C" __global__ __aicore__ void k(GM_ADDR x) {}\n'
    near = str(secret.parent / "near.h")
    for name in (str(secret), f"../../{secret.name}", near):
        said = Tools("910B2", "", root).check(text=source.replace(str(secret), name))
        assert said["verdict"] == "fail" and "canary" not in str(said)
    files = {"op_kernel/k.cpp": source, "op_host/k.cpp": HOST}
    said = Tools("910B2", "", root).check(files=files)
    assert said["verdict"] == "fail" and "canary" not in str(said)
    assert "compile-failed" in said["findings_text"]
    for path in ("/x.cpp", "a/../../x.cpp", "..", "a\0b"):
        with pytest.raises(NpusmithError) as caught:
            Tools("910B2", "", root).check(files={path: "int x;"})
        assert caught.value.code == "file-denied"


@pytest.mark.parametrize("name", ["../secret.h", "near.h"])
def test_includes_are_no_way_out(root: Path, name: str) -> None:
    (root / "a.asc").write_text(f'#include "{name}"\nint main() {{ return 0; }}\n')
    (root / "near.h").symlink_to(root.parent / "secret.h")
    assert refused(root, "check", path="a.asc") == "file-denied"
    assert refused(root, "run", project="a.asc") == "file-denied"
