"""The kernel file, op_kernel/<op>.cpp: a class with Init, Process and a function per stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isinf

from npusmith.ir.branches import Branches, branches
from npusmith.ir.launches import each_kernel, each_launch, flag_names, place
from npusmith.ir.nodes import (
    Buffer,
    Const,
    Launch,
    Loop,
    Part,
    Program,
    Role,
    Stage,
    StageKind,
    Tensor,
    TensorRole,
)
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import Block, bodies, mentioned, names, names_read, values
from npusmith.lower.cpp import real
from npusmith.lower.emit import Printer, marked
from npusmith.lower.flow import StageCall, check_loops, stage_calls, variables
from npusmith.lower.lines import STEP, code, comment
from npusmith.lower.names import Scope, camel, pascal, safe
from npusmith.lower.render import render
from npusmith.lower.spell import Spelling
from npusmith.lower.tiling import Tiling
from npusmith.lower.usage import is_repeated, is_shared, waits
from npusmith.target.cube import ROLES

_POSITION = {
    Role.VECIN: "TQue<TPosition::VECIN, 1>",
    Role.VECOUT: "TQue<TPosition::VECOUT, 1>",
    Role.THROUGH: "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1>",
    Role.VECCALC: "TBuf<TPosition::VECCALC>",
    **{role: f"TQue<TPosition::{role.value}, 1>" for role in ROLES},
}

_ENTRY = 'extern "C" __global__ __aicore__ void'
_TAIL = ("GM_ADDR workspace", "GM_ADDR tiling")
_FUNCTION = {
    StageKind.COPY_IN: "CopyIn",
    StageKind.SPLIT: "Split",
    StageKind.COMPUTE: "Compute",
    StageKind.COPY_OUT: "CopyOut",
}
_HELPERS = (
    "ScalarMin",
    "ScalarMax",
    "FloatMin",
    "FloatMax",
    "FloorDiv",
    "FloorMod",
    "CeilDiv",
    "AlignUp",
    "Infinity",
    "RunningSum",
    "RunningProduct",
    "SumBlocks",
    "MaxBlocks",
    "MinBlocks",
    "FoldRows",
    "SpreadRows",
    "ArgsortRows",
    "LoadMatrix",
    "LoadFractals",
    "LoadImage",
    "LoadSquares",
    "LoadBias",
    "Multiply",
    "StoreMatrix",
    "SyncCubes",
)
_NEEDED_BY = {
    "AlignUp": ("CeilDiv",),
    "FloorMod": ("FloorDiv",),
    "FoldRows": ("Infinity",),
    "ArgsortRows": ("Infinity",),
}


@dataclass(frozen=True, slots=True)
class ClassText:
    """The class of one kernel of the program."""

    name: str
    constants: list[str]
    helpers: list[str]
    init_head: list[str]
    init: list[str]
    process: list[str]
    stages: list[list[str]]
    members: list[str]
    uses_sync: bool  # Sync<event>()
    uses_workspace: bool
    is_cube: bool
    is_shared: bool  # launched several times
    about: list[str]


@dataclass(frozen=True, slots=True)
class RunText:
    """One launch of a kernel, with what its Init takes: "{workspace}" and "{tiling}" in it."""

    kernel: ClassText
    arguments: list[str]
    is_followed: bool = False  # the next one runs beside it

    def init(self, workspace: str, tiling: str) -> str:
        given = ", ".join(self.arguments).format(workspace=workspace, tiling=tiling)
        return f"op.Init({given});"


@dataclass(frozen=True, slots=True)
class LoopText:
    """The head of a loop around launches: "{tiling}" in its ends."""

    var: str
    start: str
    stop: str

    def head(self, tiling: str) -> str:
        start, stop = (text.format(tiling=tiling) for text in (self.start, self.stop))
        return f"int64_t {self.var} = {start}; {self.var} < {stop}; ++{self.var}"


@dataclass(frozen=True, slots=True)
class GroupText:
    """Launches of one loop, or those before, between and behind loops."""

    loop: LoopText | None
    runs: list[RunText]


@dataclass(frozen=True, slots=True)
class KernelText:
    """Pieces of the kernel file that the template puts together."""

    constants: list[str]
    helpers: list[str]  # names of scalar functions that the code below uses
    parameters: list[str]  # of the entry, without workspace and tiling
    entry_head: list[str]
    classes: list[ClassText]
    groups: list[GroupText]  # of launches, in their order
    uses_cores: bool  # SyncAll()
    type: str  # the kernel type: on which cores it runs
    is_mixed: bool  # kernels of cube cores, and of vector cores
    title: list[str]

    @property
    def is_single(self) -> bool:
        """One launch, once."""
        return len(self.groups) == 1 and len(self.groups[0].runs) == 1 and not self.groups[0].loop


def kernel_file(spec: OpSpec, tiling: Tiling, kernel: KernelText) -> str:
    """The text of op_kernel/<op>.cpp."""
    return render("kernel.cpp.j2", op=spec, tiling=tiling, kernel=kernel)


def write_kernel(program: Program, spec: OpSpec, tiling: Tiling, marks: bool = False) -> KernelText:
    """The pieces of the kernel file for a lowered program; `marks`: see lower/origins.py."""
    given = _parameters(program)
    flags = {name: number for number, name in enumerate(flag_names(program), 1)}
    classes = [_class(part, spec, tiling, marks, flags) for part in each_kernel(program)]
    if len(classes) == 1:
        classes = [replace(classes[0], name=f"{spec.op_type}Kernel")]
    runs = _runs(program, classes, tiling, given)
    parameters = [f"GM_ADDR {name}" for name in given.values()]
    summary = spec.summary or program.doc
    helpers = {name for item in classes for name in item.helpers}
    if is_repeated(program) and all(item.is_cube for item in classes):
        helpers.add("SyncCubes")
    return KernelText(
        constants=list(dict.fromkeys(line for item in classes for line in item.constants)),
        helpers=[name for name in _HELPERS if name in helpers],
        parameters=parameters,
        entry_head=code(f"{_ENTRY} {spec.name}({', '.join([*parameters, *_TAIL])})"),
        classes=classes,
        groups=_groups(program, runs, tiling),
        uses_cores=waits(program),
        type=_type(program),
        is_mixed=program.is_mixed,
        title=comment(f"{spec.op_type}: {summary}" if summary else spec.op_type),
    )


def _type(program: Program) -> str:
    """Without a wait a core needs no others."""
    if program.is_mixed:
        return "MIX_AIC_1_2"
    kind = "AIC" if program.kernels[0].is_cube else "AIV"
    return f"MIX_{kind}_1_0" if waits(program) else f"{kind}_ONLY"


def _parameters(program: Program) -> dict[str, str]:
    """The entry's parameters by tensor."""
    scope = Scope()
    for name, _ in program.consts:
        scope.add(name)
    return {item.name: scope.add(item.name) for item in program.tensors if item.role in _POINTERS}


def _runs(
    program: Program, classes: Sequence[ClassText], tiling: Tiling, given: Mapping[str, str]
) -> list[RunText]:
    """A kernel that is launched several times takes its tensors one by one, with their sizes."""
    made = {kernel.name: item for kernel, item in zip(program.kernels, classes, strict=True)}
    number: Counter[str] = Counter()
    whole = {item.name: item for item in program.tensors}
    runs: list[RunText] = []
    for part, launch in zip(each_launch(program), program.host.launches, strict=True):
        own, tensors = made[launch.kernel], part.kernel.tensors
        parts = dict(launch.parts)
        if own.is_shared:
            arguments = [
                text
                for item in tensors
                for text in (
                    _part(launch, parts[item.name], item, whole, tiling, given)
                    if item.name in parts
                    else _argument(item, tiling, given)
                )
            ]
            arguments += ["{tiling}", str(number[launch.kernel])]
        else:
            arguments = [given[item.name] for item in tensors if item.role in _POINTERS]
            arguments += [*(["{workspace}"] if own.uses_workspace else []), "{tiling}"]
        number[launch.kernel] += 1
        if launch.beside:
            runs[-1] = replace(runs[-1], is_followed=True)
        runs.append(RunText(own, [*arguments, "&pipe"]))
    return runs


def _groups(program: Program, runs: Sequence[RunText], tiling: Tiling) -> list[GroupText]:
    pairs = zip(program.host.launches, runs, strict=True)
    return [
        GroupText(loop and _loop(loop, tiling), [run for _, run in group])
        for loop, group in groupby(pairs, key=lambda pair: pair[0].loop)
    ]


def _loop(loop: Loop, tiling: Tiling) -> LoopText:
    return LoopText(safe(camel(loop.var)), tiling.number(loop.start), tiling.number(loop.stop))


def _part(
    launch: Launch,
    part: Part,
    tensor: Tensor,
    whole: Mapping[str, Tensor],
    tiling: Tiling,
    given: Mapping[str, str],
) -> tuple[str, str]:
    """Where a part of a tensor begins, and how many elements it has."""
    first, step = place(launch, part)
    begin = _argument(whole[part.tensor], tiling, given)[0]
    terms = [] if first == Const(0) else [tiling.number(first)]
    if step != Const(0):
        assert launch.loop is not None
        var = safe(camel(launch.loop.var))
        terms.append(var if step == Const(1) else f"{var} * {tiling.number(step)}")
    offset = f" + ({' + '.join(terms)}) * {tensor.dtype.bytes}" if terms else ""
    return begin + offset, tiling.number(part.length)


def _argument(tensor: Tensor, tiling: Tiling, given: Mapping[str, str]) -> tuple[str, str]:
    """Where a tensor begins, and how many elements it has."""
    size = f"{{tiling}}.{tiling.field(tensor.name + ':size')}"
    if tensor.role is TensorRole.SCRATCH:
        return f"{{workspace}} + {{tiling}}.{tiling.field(tensor.name + ':offset')}", size
    return given[tensor.name], size


def _class(
    program: Program, spec: OpSpec, tiling: Tiling, marks: bool, flags: Mapping[str, int]
) -> ClassText:
    check_loops(program.kernel)
    spell = Spelling(program, flags)
    calls = stage_calls(program.kernel)
    stages = _stages(program, spell, calls, marks)
    process = _process(program, spell, calls, marks)
    init = _init(program, spell, tiling, marks)
    body = "\n".join([*init, *process, *(line for stage in stages for line in stage)])
    shared = is_shared(program)
    workspace = any(t.role is TensorRole.SCRATCH for t in program.kernel.tensors)
    parameters: list[str] = []
    for tensor in program.kernel.tensors:
        if shared or tensor.role in _POINTERS:
            parameters.append(f"GM_ADDR {spell.name(tensor.name)}")
        if shared:
            parameters.append(f"int64_t {spell.size(tensor.name)}")
    parameters += ["GM_ADDR workspace"] if workspace and not shared else []
    parameters += [f"const {tiling.struct} &tiling", *(["int64_t launch"] if shared else [])]
    parameters += ["TPipe *pipe"]
    return ClassText(
        name=f"{spec.op_type}{pascal(program.kernel.name)}",
        constants=_constants(program, spell, body),
        helpers=_helpers(body),
        init_head=code(f"__aicore__ inline void Init({', '.join(parameters)})", 1),
        init=init,
        process=process,
        stages=stages,
        members=_members(program, spell, body),
        uses_sync="Sync<" in body,
        uses_workspace=workspace,
        is_cube=program.kernel.is_cube,
        is_shared=shared,
        about=comment(program.kernel.doc) if program.kernel.doc else [],
    )


_POINTERS = (TensorRole.INPUT, TensorRole.OUTPUT)


def _constants(program: Program, spell: Spelling, body: str) -> list[str]:
    """Module constants that the kernel uses."""
    lines = []
    read = names_read(program.kernel.body)
    sides = (side for item in program.kernel.buffers for side in (item.named, item.named_cols))
    read |= {name for side in sides if side is not None for name in names(side)}
    for name, value in program.consts:
        if name not in read or isinf(value):  # an infinity is written out where it is used
            continue
        if isinstance(value, int):
            lines.append(f"constexpr int64_t {spell.name(name)} = {value};")
        else:
            literal = real(value, spell.dialect.infinity)
            lines.append(f"constexpr float {spell.name(name)} = {literal};")
    return lines


def _helpers(body: str) -> list[str]:
    used = {name for name in _HELPERS if f"{name}(" in body or f"{name}<" in body}
    used |= {more for name in used for more in _NEEDED_BY.get(name, ())}
    return [name for name in _HELPERS if name in used]


def _init(program: Program, spell: Spelling, tiling: Tiling, marks: bool) -> list[str]:
    lines: list[str] = []
    shared = is_shared(program)
    for scalar in program.kernel.scalars:
        member = tiling.scalar(program.kernel.name, scalar.name, "launch")
        lines += code(f"{spell.name(scalar.name)} = tiling.{member};", 2)
    for tensor in program.kernel.tensors:
        pointer = spell.name(tensor.name)
        if shared:
            size = spell.size(tensor.name)
        else:
            size = f"tiling.{tiling.field(tensor.name + ':size')}"
            if tensor.role is TensorRole.SCRATCH:
                pointer = f"(workspace + tiling.{tiling.field(tensor.name + ':offset')})"
        cast = f"(__gm__ {tensor.dtype.cpp} *){pointer}"
        lines += code(f"{spell.tensor(tensor.name)}.SetGlobalBuffer({cast}, {size});", 2)
    lines = marked(lines, program.kernel.line) if marks else lines
    return [*lines, *_init_buffers(branches(program), spell, marks, 2)]


def _init_buffers(found: Branches, spell: Spelling, marks: bool, indent: int) -> list[str]:
    """Buffers of every version, then those of each."""
    lines: list[str] = []
    gaps = [*(buffer.gap for buffer in found.buffers[1:]), 0]
    for at, buffer in enumerate(found.buffers):
        within = gaps[at] if buffer.role is Role.VECCALC else 0
        made = code(_init_buffer(buffer, spell, within), indent)
        if buffer.gap and not (at and found.buffers[at - 1].role is Role.VECCALC):
            name = f"bankGap{spell.program.kernel.buffers.index(buffer)}"
            made = [*_init_gap(name, buffer.gap, indent), *made]
        lines += marked(made, buffer.line) if marks else made
    if found.test is None or not any(path for side in found.sides for path in side.paths()):
        return lines
    first, second = (_init_buffers(side, spell, marks, indent + 1) for side in found.sides)
    test, line = spell.show(found.test.cond), found.test.line

    def written(text: str) -> list[str]:
        made = code(text, indent)
        return marked(made, line) if marks else made

    if not first:
        return [*lines, *written(f"if (!({test})) {{"), *second, *written("}")]
    lines += [*written(f"if ({test}) {{"), *first]
    return [*lines, *(written("} else {") if second else []), *second, *written("}")]


def _init_buffer(buffer: Buffer, spell: Spelling, gap: int) -> str:
    """`gap`: bytes behind what is used, where the next one begins in another bank group."""
    assert isinstance(buffer.length, Const)  # normalize has run
    sides = [buffer.named or buffer.length]
    sides += [] if buffer.cols is None else [buffer.named_cols or buffer.cols]
    size = " * ".join([*map(spell.factor, sides), f"sizeof({buffer.dtype.cpp})"])
    size += f" + {gap}" if gap else ""
    count = "" if buffer.role is Role.VECCALC else f"{buffer.depth}, "
    return f"pipe->InitBuffer({spell.queue(buffer.name)}, {count}{size});"


def _init_gap(name: str, size: int, indent: int) -> list[str]:
    """What nobody uses, behind a queue: it moves the buffers behind it into other bank groups."""
    lines = (f"{_POSITION[Role.VECCALC]} {name};", f"pipe->InitBuffer({name}, {size});")
    return [line for text in lines for line in code(text, indent)]


def _members(program: Program, spell: Spelling, body: str) -> list[str]:
    lines: list[str] = []
    for tensor in program.kernel.tensors:
        lines += code(f"GlobalTensor<{tensor.dtype.cpp}> {spell.tensor(tensor.name)};", 1)
    for buffer in program.kernel.buffers:
        assert buffer.role is not None  # place_buffers has run
        lines += code(f"{_POSITION[buffer.role]} {spell.queue(buffer.name)};", 1)
        if buffer.role is Role.CO1:
            lines += code(f"int64_t {spell.height(buffer.name)} = 0;", 1)
    for scalar in program.kernel.scalars:
        lines += code(f"{spell.kinds[scalar.name].value} {spell.name(scalar.name)};", 1)
    return lines


def _process(
    program: Program, spell: Spelling, calls: dict[int, StageCall], marks: bool
) -> list[str]:
    body = program.kernel.body
    printer = Printer(spell, calls, marks)
    printer.heads = _heads(spell, branches(program))
    wanted = _outer_variables(body) | {name for call in calls.values() for name in call.gives}
    fetched = _fetch(branches(program).buffers, spell, _read_between(body), 2)
    return [*fetched, *printer.block(body, 2, frozenset(wanted))]


def _outer_variables(block: Block) -> set[str]:
    """Variables assigned outside of stages."""
    found: set[str] = set()
    for stmt in block:
        found |= variables((stmt,)) if not bodies(stmt) else set()
        if not isinstance(stmt, Stage):
            for body in bodies(stmt):
                found |= _outer_variables(body)
    return found


def _read_between(block: Block) -> Iterator[str]:
    """Buffers read by value() outside of stages."""
    for stmt in block:
        yield from (view.buffer for view in values(stmt))
        if not isinstance(stmt, Stage):
            for body in bodies(stmt):
                yield from _read_between(body)


def _heads(spell: Spelling, found: Branches, indent: int = 3) -> dict[int, list[str]]:
    """The same at the head of each version, by the identity of its statements."""
    lines: dict[int, list[str]] = {}
    if found.test is not None:
        blocks = (found.test.then, found.test.orelse)
        for block, side in zip(blocks, found.sides, strict=True):
            lines[id(block)] = _fetch(side.buffers, spell, _read_between(block), indent)
            lines |= _heads(spell, side, indent + 1)
    return lines


def _fetch(
    held: Iterable[Buffer], spell: Spelling, buffers: Iterator[str], indent: int
) -> list[str]:
    """Local tensors of the scratch buffers among `buffers`."""
    used = set(buffers)
    lines: list[str] = []
    for buffer in held:
        if buffer.name in used and buffer.role is Role.VECCALC:
            element = buffer.dtype.cpp
            left = f"LocalTensor<{element}> {spell.local(buffer.name)}"
            lines += code(f"{left} = {spell.queue(buffer.name)}.Get<{element}>();", indent)
    return lines


def _stages(
    program: Program, spell: Spelling, calls: dict[int, StageCall], marks: bool
) -> list[list[str]]:
    """The member functions; stages that would print alike share one (`calls` is renamed)."""
    known: dict[tuple[str, ...], str] = {}
    counters: dict[StageKind, int] = {}
    functions: list[list[str]] = []
    for key, call in calls.items():
        pattern = tuple(_stage(replace(call, name=_FUNCTION[call.stage.kind]), program, spell))
        if pattern not in known:
            number = counters.get(call.stage.kind, 0)
            counters[call.stage.kind] = number + 1
            known[pattern] = f"{_FUNCTION[call.stage.kind]}{number}"
            functions.append(_stage(replace(call, name=known[pattern]), program, spell, marks))
        calls[key] = replace(call, name=known[pattern])
    return functions


def _stage(call: StageCall, program: Program, spell: Spelling, marks: bool = False) -> list[str]:
    """One member function, from its head to its closing brace."""
    tensors = [
        f"const LocalTensor<{spell.type(name)}> &{spell.local(name)}" for name in call.tensors
    ]
    takes = [f"{spell.kinds[name].value} {spell.name(name)}" for name in call.takes]
    gives = [f"{spell.kinds[name].value} &{spell.name(name)}" for name in call.gives]
    head = f"__aicore__ inline void {call.name}({', '.join([*tensors, *takes, *gives])})"
    own = variables(call.stage.body) - set(call.gives)
    printer = Printer(spell, {}, marks)
    return [
        *code(head, 1),
        STEP + "{",
        *_fetch(program.kernel.buffers, spell, mentioned(call.stage.body), 2),
        *printer.block(call.stage.body, 2, frozenset(own)),
        STEP + "}",
    ]
