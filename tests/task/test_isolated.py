"""Attempts to pass without a kernel, or to fool the judge, from the Python part of a candidate.

The reading of the text is left out here: what convicts is what the judge saw from outside.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_module import BINDING, MODEL, PROJECT

from npusmith.errors import TaskError
from npusmith.target.chips import find_chip
from npusmith.task.isolated import arrays, attempt, origin
from npusmith.task.isolated.attempt import Candidate, Limits, Value
from npusmith.twin.formats import read_submission
from npusmith.twin.module import build_module

CHIP = find_chip("910B2")
SHAPE = (4, 40)
CALLS = 2

HEAD = """
import ctypes, functools, gc, operator, os, pickle, struct, subprocess, sys, threading, time
import numpy as np
import torch
from torch import nn
import custom_ops_lib
K = custom_ops_lib.add_custom
def pipes():
    import npusmith.task.isolated.model
    return next(x.pipes for x in sys.meta_path if hasattr(x, "pipes"))
"""
# What stands beside the class, in __init__, and in forward(self, a, b); the task is a + b.
FAIR = {
    "the call": ("", "", "return K(a, b)"),
    "views of the result": ("", "", "return K(a.view(-1), b.view(-1)).view(4, 40)"),
    "transposed": ("", "", "return K(a.t().contiguous(), b.t().contiguous()).t()"),
    "cast and back": ("", "", "return K(a, b).double().float()"),
    "in halves": (
        "", "", "return torch.cat([K(a[:2], b[:2]), K(a[2:], b[2:])])",
    ),
    "padded": (
        "", "",
        "p = torch.zeros(4, 64); p[:, :40] = a; q = torch.zeros(4, 64); q[:, :40] = b\n"
        "return K(p, q)[:, :40]",
    ),
    "a weight made beforehand": (
        "", "self.z = nn.Parameter(torch.zeros(4, 40) * 2)", "return K(K(a, self.z), b)",
    ),
}  # fmt: skip
CHEATS = {
    "torch": ("", "", "return torch.add(a, b)"),
    "getattr": ("", "", "return getattr(torch, 'a' + 'dd')(a, b)"),
    "an alias": ("f = torch.add", "", "return f(a, b)"),
    "operator": ("", "", "return operator.add(a, b)"),
    "a dunder": ("", "", "return a.__add__(b)"),
    "reduce": ("", "", "return functools.reduce(operator.add, [a, b])"),
    "aten": ("", "", "return torch.ops.aten.add(a, b)"),
    "a lambda in the module": ("", "self.f = lambda x, y: x + y", "return self.f(a, b)"),
    "a hook": (
        "", "self.register_forward_hook(lambda m, i, o: i[0] + i[1])", "return K(a, a)",
    ),
    "a hook of all modules": (
        "nn.modules.module.register_module_forward_hook(lambda m, i, o: i[0] + i[1])", "",
        "return K(a, a)",
    ),
    "another forward": ("", "self.forward = lambda a, b: a + b", "return K(a, a)"),
    "another __call__": (
        "nn.Module.__call__ = lambda self, a, b: a + b", "", "return K(a, a)",
    ),
    "the reference in sys.modules": (
        "", "", "return sys.modules['npusmith_task'].Model()(a, b)",
    ),
    "numpy": ("", "", "return torch.from_numpy(a.numpy() + b.numpy())"),
    "numpy into the kernel's result": (
        "", "", "r = K(a, torch.zeros_like(a)); r.numpy()[:] += b.numpy(); return r",
    ),
    "struct": (
        "", "",
        "v = [x + y for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())]\n"
        "return torch.frombuffer(bytearray(struct.pack('160f', *v)), dtype=torch.float32)"
        ".view(4, 40)",
    ),
    "ctypes": (
        "", "",
        "r = K(a, b).clone(); p = ctypes.cast(r.data_ptr(), ctypes.POINTER(ctypes.c_float))\n"
        "for i, (x, y) in enumerate(zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())):\n"
        "    p[i] = 0.0\n"
        "    p[i] = x + y + 1e-9\n"
        "return r + 0 * a if False else r.mul(1).add(0.0).sub(a).add(a)",
    ),
    "jit": ("@torch.jit.script\ndef f(a, b):\n    return a + b", "", "return f(a, b)"),
    "exec": ("", "", "d = {'a': a, 'b': b}; exec('c = a + b', d); return d['c']"),
    "a subclass of Tensor": (
        "class T(torch.Tensor):\n    pass", "", "return a.as_subclass(T) + b.as_subclass(T)",
    ),
    "__torch_function__": (
        "class T(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, t, args=(), kwargs=None):\n"
        "        with torch._C.DisableTorchFunctionSubclass():\n"
        "            return torch.add(*args)",
        "", "return torch.sub(a.as_subclass(T), b.as_subclass(T))",
    ),
    "pickle": (
        "class P:\n    def __init__(self, a, b):\n        self.v = a, b\n"
        "    def __reduce__(self):\n        return operator.add, self.v",
        "", "return pickle.loads(pickle.dumps(P(a, b)))",
    ),
    "a thread": (
        "", "",
        "r = []; t = threading.Thread(target=lambda: r.append(a + b)); t.start(); t.join()\n"
        "return r[0]",
    ),
    "autograd": (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(c, a, b):\n"
        "        return a + b",
        "", "return F.apply(a, b)",
    ),
    "vmap": ("", "", "return torch.vmap(lambda x, y: x + y)(a, b)"),
    "a linear layer": (
        "", "self.l = nn.Linear(2, 1, bias=False); self.l.weight.data.fill_(1.0)",
        "return self.l(torch.stack([a, b], -1))[..., 0]",
    ),
    "a launch that is thrown away": ("", "", "K(a, a); return a + b"),
    "a launch on what was computed": ("", "", "return K(a + b, torch.zeros_like(a))"),
    "a launch on half of it": ("", "", "return K(a * 0.5, a * 0.5 + b)"),
    "the rest after the launch": ("", "", "return K(a, torch.zeros_like(a)) + b"),
    "one element after the launch": (
        "", "", "r = K(a, b); r[0, 0] = a[0, 0] + b[0, 0] + 1e-9; r[0, 1] = r[0, 1] * 1.0000002; "
        "return r",
    ),
    "in place of an input": ("", "", "return a.add_(b)"),
    "an input written and launched": ("", "", "a.add_(b); b.zero_(); return K(a, b)"),
    "the first result again": (
        "", "self.kept = None",
        "self.kept = K(a, b) if self.kept is None else self.kept\nreturn self.kept",
    ),
    "results by address": (
        "", "self.kept = {}",
        "k = a.data_ptr()\n"
        "if k not in self.kept:\n    self.kept[k] = K(a, b)\n"
        "return self.kept[k]",
    ),
    "drawn beforehand": (
        "g = torch.Generator().manual_seed(0)\nA, B = (torch.randn(4, 40, generator=g),\n"
        "        torch.randn(4, 40, generator=g))",
        "self.c = A + B", "return self.c.clone()",
    ),
    "an input as it is": ("", "", "K(a, a); return a"),
    "a lazy negation": (
        "", "", "return torch._neg_view(K(torch._neg_view(a), torch._neg_view(b)))",
    ),
    "another function in the compiled module": (
        "custom_ops_lib.add_custom = lambda a, b: a + b", "",
        "return custom_ops_lib.add_custom(a, b)",
    ),
    "the judge's own code": (
        "import npusmith.task.isolated.model as m\n"
        "import npusmith.task.isolated.values as v\n"
        "old = m._run\n"
        "def run(orders, model, head, blobs, *rest):\n"
        "    a, b = m._value(head['args'], blobs, '')['args']\n"
        "    p = v.pack(a + b)\n"
        "    return {'kind': 'outputs', 'result': p.tree}, p.blobs()\n"
        "m._run = run",
        "", "return K(a, b)",
    ),
    "an answer of its own": (
        "", "",
        "import npusmith.task.isolated.values as v\nfrom npusmith.twin import frames\n"
        "p = v.pack(a + b)\n"
        "frames.send(pipes()[1], {'kind': 'outputs', 'result': p.tree}, p.blobs())\n"
        "return a + b",
    ),
    "a launch of its own": (
        "", "",
        "from npusmith.twin import frames\nr = (a + b).numpy()\n"
        "frames.send(pipes()[1], {'kind': 'called', 'name': 'x', 'given': 0, 'changed': [],\n"
        "  'args': {'list': []}, 'result': {'tensor': 0, 'at': 0, 'shape': [4, 40],\n"
        "  'stride': [40, 1], 'dtype': 'float32'}}, [r.tobytes()])\n"
        "frames.receive(pipes()[0])\nreturn a + b",
    ),
    "a launch asked for by itself": (
        "", "",
        "from npusmith.twin import frames\n"
        "frames.send(pipes()[1], {'kind': 'launch', 'op': 'AddCustom', 'dtypes': [],\n"
        "  'inputs': [], 'outputs': [], 'attrs': {}, 'writable': [], 'initial': []})\n"
        "frames.receive(pipes()[0])\nreturn a + b",
    ),
    "torch in the other process": (
        "", "",
        "import npusmith.task.isolated.model as m\n"
        "return m._function(pipes(), 'torch.ops.aten::add.Tensor')(a, b)",
    ),
    "another member of the module": (
        "", "",
        "import npusmith.task.isolated.model as m\n"
        "m._function(pipes(), '__setattr__')('add_custom', 1)\nreturn a + b",
    ),
    "a tensor behind its memory": (
        "", "",
        "import npusmith.task.isolated.values as v\nfrom npusmith.twin import frames\n"
        "p = v.pack(((a, b), {}))\np.tree['tuple'][0]['tuple'][0]['stride'] = [1 << 40, 1 << 40]\n"
        "told = {'kind': 'call', 'name': 'add_custom', 'args': p.tree}\n"
        "frames.send(pipes()[1], told, p.blobs())\n"
        "frames.receive(pipes()[0])\nreturn a + b",
    ),
    "files emptied": (
        "", "",
        "K(a, a)\n"
        "for base, _, names in os.walk(os.getcwd()):\n"
        "    for n in names:\n"
        "        try:\n            open(os.path.join(base, n), 'w').close()\n"
        "        except OSError:\n            pass\n"
        "return a + b",
    ),
    "the judge's pipes by name": (
        "", "",
        "for base, _, names in os.walk(os.getcwd()):\n"
        "    for n in names:\n"
        "        if n.endswith(('.in', '.out')):\n            return K(a, b)\n"
        "return a + b",
    ),
    "the other process killed": (
        "", "",
        "for p in range(os.getpid() - 3, os.getpid()):\n"
        "    try:\n        os.kill(p, 9); time.sleep(0.1)\n"
        "    except OSError:\n        pass\n"
        "return a + b",
    ),
    "the other process's memory": (
        "", "",
        "open(f'/proc/{os.getppid()}/mem', 'r+b')\nreturn a + b",
    ),
    "the other process's pipes": (
        "", "",
        "for fd in range(3, 12):\n"
        "    try:\n"
        "        os.write(os.open(f'/proc/{os.getpid() - 1}/fd/{fd}', os.O_WRONLY), b'x')\n"
        "    except OSError:\n        pass\n"
        "return a + b",
    ),
    "another program": (
        "", "", "subprocess.run(['true'], check=True)\nreturn a + b",
    ),
    "another process": ("", "", "if os.fork() == 0:\n    os._exit(0)\nreturn a + b"),
    "objects of the judge": (
        "", "",
        "t = [x for x in gc.get_objects() if isinstance(x, torch.Tensor) and x.shape == a.shape]\n"
        "return next((x for x in t if x is not a and x is not b\n"
        "             and torch.equal(x, a + b)), a + b)",
    ),
    "the end before the answer": ("", "", "os._exit(0)"),
    "a result as an exception": ("", "", "raise type('E', (Exception,), {})(a + b)"),
    "a generator of tensors": ("", "", "return (x for x in [a + b])"),
}  # fmt: skip


@pytest.fixture(scope="module")
def candidate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Candidate]:
    folder = tmp_path_factory.mktemp("isolated")
    texts = {
        "project_json_src": '[{"op": "AddCustom", "input_desc": []}]',
        "host_tiling_src": (PROJECT / "op_host/add_custom_tiling.h").read_text(),
        "host_operator_src": (PROJECT / "op_host/add_custom.cpp").read_text(),
        "kernel_src": (PROJECT / "op_kernel/add_custom.cpp").read_text(),
        "python_bind_src": BINDING,
        "model_src": MODEL,
    }
    file = folder / "answer.py"
    file.write_text("".join(f"{name} = {text!r}\n" for name, text in texts.items()))
    for name in ("built", "run"):
        (folder / name).mkdir()
    built = build_module(read_submission(file), CHIP, folder / "built")
    with Candidate(built, CHIP, folder / "run", Limits(600)) as found:
        yield found


def judged(candidate: Candidate, parts: tuple[str, str, str]) -> list[str]:
    """What speaks against a candidate; nothing for one that passes."""
    outer, init, forward = parts
    model = candidate.built.root / "attempt.py"
    model.write_text(
        f"{HEAD}{outer}\nclass ModelNew(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        {init or 'pass'}\n    def forward(self, a, b):\n"
        f"{textwrap.indent(forward, ' ' * 8)}\n"
    )
    draw = np.random.default_rng(3)
    calls, against = [], []
    assert candidate.boxed is None
    with candidate.start(model, "ModelNew", 7) as attempt:
        for _ in range(CALLS):
            a, b = (draw.normal(size=SHAPE).astype(np.float32) for _ in range(2))
            tree = {"list": [arrays.leaf(0, a), arrays.leaf(1, b)]}
            answer = attempt.call(Value(tree, (a, b)))
            if answer.error is not None:
                return [f"{answer.error.code}: {answer.error.message}"]
            calls.append(origin.Call((a, b), answer.launches, answer.outputs))
            if len(answer.outputs) != 1 or not np.allclose(answer.outputs[0], a + b, 1e-6, 1e-6):
                against.append("wrong values")
    return against + [f"{item.code}: {item.message}" for item in origin.trace(calls)]


@pytest.mark.parametrize("name", FAIR)
def test_moving_data_around_launches_is_fair(candidate: Candidate, name: str) -> None:
    assert judged(candidate, FAIR[name]) == []


@pytest.mark.parametrize("name", CHEATS)
def test_an_attempt_does_not_pass(candidate: Candidate, name: str) -> None:
    assert judged(candidate, CHEATS[name]) != []


def test_a_fair_candidate_passes_after_all_attempts(candidate: Candidate) -> None:
    assert judged(candidate, FAIR["the call"]) == []


def test_what_keeps_the_box_from_starting_is_told(
    candidate: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> list[str]:
        raise TaskError("torch-missing", "the package torch is not installed")

    monkeypatch.setattr(attempt, "package_paths", missing)
    with (
        pytest.raises(TaskError, match="torch-missing"),
        Candidate(candidate.built, CHIP, tmp_path, Limits(30)) as other,
    ):
        assert judged(other, FAIR["the call"]) != []
