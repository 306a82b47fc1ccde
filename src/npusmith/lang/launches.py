"""The host function: its names and types, and what it launches kernels with."""

from __future__ import annotations

from npusmith.ir.launches import linear
from npusmith.ir.nodes import Assign, Expr, Host, Kernel, Launch, Note, Program, TensorRole
from npusmith.ir.text import show_expr
from npusmith.ir.walk import inner_names, target
from npusmith.lang.kinds import Kind, Typist, Visible, host_typist
from npusmith.lang.log import Log
from npusmith.lang.words import mean


def check_host(program: Program, file: str) -> Log:
    """A straight line of assignments; every kernel is launched, with what it takes."""
    host = program.host
    log = Log(file, host.name)
    typist = host_typist(program, log)
    visible: Visible = {}
    for stmt in host.body:
        if not isinstance(stmt, Assign | Note):
            log.add("lang-host", "a host function is a straight line of assignments", stmt)
        typist.stmt(stmt, visible)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for launch in host.launches:
        typist.expect(launch.cores, Kind.INT, visible, launch.line, "the number of cores")
        if launch.kernel not in kernels:
            message = f"launch() starts {launch.kernel!r}, and no kernel is called that"
            hint = mean(launch.kernel, list(kernels))
            log.add("lang-launch", message, launch.line, hint=hint)
            continue
        kernel = kernels[launch.kernel]
        want = _wanted(launch, kernel, program)
        _check_given(launch, want, {item.name for item in kernel.scalars}, log)
        _check_parts(launch, typist, visible, log)
        for name, value in launch.args:
            if name in want:
                typist.expect(value, want[name], visible, launch.line, f"{name!r}")
    launched = {launch.kernel for launch in host.launches}
    for name, kernel in kernels.items():
        if name not in launched:
            log.add(
                "lang-launch", f"{name!r} is not launched", kernel.line,
                legal="at least one launch() for each kernel", hint=f"launch({name}, ...)",
            )  # fmt: skip
    _check_alike(host, program, log)
    return log


def _check_parts(launch: Launch, typist: Typist, visible: Visible, log: Log) -> None:
    """Where parts begin, how long they are, and how often a loop runs."""
    loop = launch.loop
    if loop is not None:
        typist.expect(loop.start, Kind.INT, visible, loop.line, "where the loop begins")
        typist.expect(loop.stop, Kind.INT, visible, loop.line, "where the loop ends")
    for own, part in launch.parts:
        typist.expect(part.length, Kind.INT, visible, launch.line, f"the length of {own!r}")
        ends = (part.start,) if loop is None else linear(part.start, loop.var)
        if ends is None:
            log.add(
                "lang-launch", f"where {own!r} begins is no number plus a number times the loop's",
                launch.line, legal="part(states, t * n, n), part(states, (steps - 1 - t) * n, n)",
            )  # fmt: skip
            continue
        for expr in ends:
            typist.expect(expr, Kind.INT, visible, launch.line, f"where {own!r} begins")


def _check_alike(host: Host, program: Program, log: Log) -> None:
    """What launches have in common is the same: the cores, and the length of a scratch tensor."""
    scratch = {item.name for item in program.tensors if item.role is TensorRole.SCRATCH}
    first, lengths = host.launches[0], dict[str, Expr]()
    for launch in host.launches:
        if launch.cores != first.cores:
            log.add(
                "lang-launch",
                f"{launch.kernel!r} starts on {show_expr(launch.cores)} cores, {first.kernel!r} on "
                f"{show_expr(first.cores)}", launch.line, legal="as many cores for each launch",
                hint="cores without work have nothing to do: guard with core_id()",
            )  # fmt: skip
        for name, value in launch.args:
            if name in scratch and lengths.setdefault(name, value) != value:
                log.add(
                    "lang-launch", f"scratch tensor {name!r} has two lengths", launch.line,
                    legal=show_expr(lengths[name]),
                )  # fmt: skip


def check_bindings(program: Program, file: str) -> Log:
    """What launches bind the tensors of kernels to; all other checks rely on it."""
    log = Log(file, program.host.name)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for launch in program.host.launches:
        if launch.kernel in kernels:
            _check_tensors(launch, kernels[launch.kernel], program, log)
    return log


def _check_tensors(launch: Launch, kernel: Kernel, program: Program, log: Log) -> None:
    """Are its tensors bound to one tensor each?"""
    given = {name for name, _ in launch.args}
    names = [item.name for item in program.bound(kernel, launch)]
    parts = {part.tensor for _, part in launch.parts}
    for own in dict(launch.parts):
        if own not in {item.name for item in kernel.tensors}:
            message = f"{own}=part(...): {kernel.name!r} has no tensor {own!r}"
            log.add("lang-launch", message, launch.line)
    whole = [(own, part.tensor) for own, part in launch.parts] + [*launch.tensors]
    for own, other in whole:
        if other not in program.host.tensors and other not in given:
            known = [*map(target, program.host.body), *program.host.tensors]
            known += [item.name for item in program.tensors if item.name in given]
            log.add(
                "lang-launch",
                f"{own}={other}: {other!r} is no variable, no tensor that the host takes, and no "
                "scratch tensor that has a length here", launch.line,
                legal=f"{own}={other}, {other}=<length> for a scratch tensor",
                hint=mean(other, known),
            )  # fmt: skip
        elif other in inner_names(kernel) and own in dict(launch.tensors):
            log.add(
                "lang-launch", f"{own}={other}: something in {kernel.name!r} is called {other!r}",
                launch.line, hint="another name for it in the kernel",
            )  # fmt: skip
    owns = [own for own, _ in whole]
    for own in dict.fromkeys(owns):
        if owns.count(own) > 1:
            log.add("lang-launch", f"{own!r} is given twice", launch.line, hint=f"{own}=...")
    for name in dict.fromkeys(names):
        if len(owns) == len(set(owns)) and names.count(name) > 1 and name not in parts:
            message = f"two tensors of {kernel.name!r} are {name!r} in one launch"
            log.add("lang-launch", message, launch.line, legal="each tensor under one name")


def _wanted(launch: Launch, kernel: Kernel, program: Program) -> dict[str, Kind]:
    """What a launch gives values for: the kernel's parameters and the lengths of scratch."""
    want = {item.name: Kind.FLOAT if item.is_float else Kind.INT for item in kernel.scalars}
    bound = program.bound(kernel, launch)
    return want | {item.name: Kind.INT for item in bound if item.role is TensorRole.SCRATCH}


def _check_given(launch: Launch, want: dict[str, Kind], scalars: set[str], log: Log) -> None:
    given = [name for name, _ in launch.args]
    for name in given:
        if name not in want:
            hint = mean(name, list(want))
            message = f"the kernel has no int, float or scratch parameter {name!r}"
            log.add("lang-launch", message, launch.line, hint=hint)
    for name in want:
        if given.count(name) != 1:
            problem = "has no value" if name not in given else "is given twice"
            what = "" if name in scalars else "scratch length "
            log.add("lang-launch", f"{what}{name!r} {problem}", launch.line, hint=f"{name}=...")
