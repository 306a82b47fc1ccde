"""What gdb's own Python runs: stops at findings, shows the user's line, variables and tensors.

Not imported by npusmith: debugger.py writes it into the folder of a run, behind SETTINGS.
"""

# mypy: ignore-errors
import json
import math
import struct
from pathlib import Path

import gdb

SETTINGS = json.loads(SETTINGS)  # noqa: F821 - the line before this file
AROUND = 4  # lines shown before and after the present one
FEW, MANY = 8, 64  # elements of a tensor: among the variables, and by `ub`
UB_POSITION = 9  # VECIN
FORMATS = {
    "float": "f", "half": "e", "double": "d", "int8_t": "b", "signed char": "b", "uint8_t": "B",
    "unsigned char": "B", "bool": "?", "int16_t": "h", "short": "h", "uint16_t": "H",
    "unsigned short": "H", "int32_t": "i", "int": "i", "uint32_t": "I", "unsigned int": "I",
    "int64_t": "q", "long": "q", "uint64_t": "Q", "unsigned long": "Q",
}  # fmt: skip


# ---- memory of the core


def memory_of(position):
    """The address where the memory of a position begins, on the core that runs."""
    return int(gdb.parse_and_eval(f"((unsigned long (*)(int)) twin_memory)({position})"))


def read(address, count, kind):
    """`count` numbers of an element type that lie at an address."""
    wide = kind == "bfloat16_t"
    form = "H" if wide else FORMATS.get(kind, "B")
    size = struct.calcsize(form)
    data = bytes(gdb.selected_inferior().read_memory(address, count * size))
    values = struct.unpack(f"<{count}{form}", data)
    if wide:
        values = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(v << 16 for v in values)))
    return values


def size_of(kind):
    return 2 if kind == "bfloat16_t" else struct.calcsize(FORMATS.get(kind, "B"))


def number(value):
    if isinstance(value, float):
        return str(value) if not math.isfinite(value) else f"{value:.6g}"
    return str(value)


def kind_of(tensor):
    """The element type of a tensor, as the user would write it."""
    return str(tensor.type.strip_typedefs().template_argument(0)).split("::")[-1]


def is_tensor(value, name):
    plain = value.type.strip_typedefs().unqualified()
    if plain.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        plain = plain.target().strip_typedefs().unqualified()
    return str(plain).startswith(f"AscendC::{name}<")


def plain(value):
    code = value.type.strip_typedefs().code
    return (
        value.referenced_value() if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF) else value
    )


def show_local(tensor, most):
    """A LocalTensor in words: where it lies, and its first elements."""
    view = tensor["view_"]
    kind, where = kind_of(tensor), str(view["position"]).split("::")[-1]
    addr, size = int(view["addr"]), int(view["bytes"])
    head = f"LocalTensor<{kind}> at {where} byte {addr}, {size} B"
    if size <= 0 or where in ("MAX", "GM"):
        return head
    count = min(most, size // size_of(kind))
    values = read(memory_of(int(view["position"])) + addr, count, kind)
    more = ", ..." if size // size_of(kind) > count else ""
    return f"{head}: {', '.join(map(number, values))}{more}"


def show_global(tensor):
    gm = tensor["gm_"]
    size = int(gm["bytes"])
    length = "of any length" if size < 0 else f"{size} B"
    return f"GlobalTensor<{kind_of(tensor)}> at {int(gm['base']):#x}, {length}"


def show(value, most=FEW):
    if is_tensor(value, "LocalTensor"):
        return show_local(plain(value), most)
    if is_tensor(value, "GlobalTensor"):
        return show_global(plain(value))
    return value.format_string(max_elements=16, max_depth=2)


# ---- where it stands


def is_users(frame):
    table = frame.find_sal().symtab
    if table is None:
        return False
    name = table.fullname()
    return not (name.startswith((SETTINGS["ours"], "/usr/")) or "npusmith " in table.filename)


def users_frame():
    """The innermost frame of the user's own code; None outside of a kernel."""
    frame = gdb.newest_frame()
    while frame is not None and not is_users(frame):
        frame = frame.older()
    return frame


def variables(frame):
    """Name and value of what the user can see there, arguments first, inner blocks before outer."""
    found = {}
    block = frame.block()
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.name not in found:
                found[symbol.name] = symbol.value(frame) if symbol.needs_frame else symbol.value()
        if block.function:
            break
        block = block.superblock
    return found


def show_lines(frame):
    here = frame.find_sal()
    print(f"{here.symtab.filename}:{here.line} in {frame.name()}")
    try:
        text = Path(here.symtab.fullname()).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    lines = text.splitlines()
    for at in range(max(here.line - AROUND, 1), min(here.line + AROUND, len(lines)) + 1):
        print(f"{'->' if at == here.line else '  '} {at:5}  {lines[at - 1]}")


def show_variables(frame):
    for name, value in variables(frame).items():
        if name == "this":
            fields(value)
            continue
        try:
            print(f"  {name} = {show(value)}")
        except gdb.error as error:
            print(f"  {name}: {error}")


def fields(this):
    """The members of the kernel's class that are tensors or numbers."""
    value = this.dereference()
    for field in value.type.fields():
        if field.is_base_class or not hasattr(field, "bitpos"):  # of a base, or static
            continue
        member = value[field]
        simple = member.type.strip_typedefs().code in (
            gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM,
        )  # fmt: skip
        if simple or is_tensor(member, "LocalTensor") or is_tensor(member, "GlobalTensor"):
            print(f"  this->{field.name} = {show(member)}")


def show_place():
    frame = users_frame()
    if frame is None:
        print("outside of the kernel's own code")
        return
    frame.select()
    show_lines(frame)
    show_variables(frame)


def said():
    """The finding in words, as the runtime left it."""
    at = int(gdb.parse_and_eval("(unsigned long) &twin_said"))
    text = bytes(gdb.selected_inferior().read_memory(at, 4096)).split(b"\0")[0]
    return text.decode("utf-8", "replace")


# ---- stops

KERNELS = []  # where kernels begin, while a block is waited for


class Finding(gdb.Breakpoint):
    def announce(self):
        print(f"\n{said()}")
        show_place()


class Begin(gdb.Breakpoint):
    """Where the runtime starts a core: from there on the kernel's own function is waited for."""

    def stop(self):
        if int(gdb.parse_and_eval("*(int *) &twin_block")) == SETTINGS["core"]:
            for entry in SETTINGS["entries"]:
                KERNELS.extend(
                    Kernel(name, internal=True) for name in (entry, f"twin_kernel_{entry}")
                )
        return False


class Kernel(gdb.Breakpoint):
    """The first line of a kernel."""

    def announce(self):
        for point in KERNELS:
            point.enabled = False  # the other blocks pass
        print(f"\nblock {SETTINGS['core']} begins")
        show_place()


def on_stop(event):
    if isinstance(event, gdb.BreakpointEvent):
        for point in event.breakpoints:
            if isinstance(point, (Finding, Kernel)):
                gdb.post_event(point.announce)
    elif isinstance(event, gdb.SignalEvent):
        print(f"\nthe kernel was stopped by {event.stop_signal}")
        gdb.post_event(show_place)


def on_exit(event):
    print("\nthe run is over")


# ---- commands


class Where(gdb.Command):
    """where-am-i: the finding, the user's line and variables once more."""

    def __init__(self):
        super().__init__("place", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        print(said())
        show_place()


class Ub(gdb.Command):
    """ub TENSOR [COUNT], or ub BYTE TYPE [COUNT]: elements of a tensor, or of UB from there on."""

    def __init__(self):
        super().__init__("ub", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            print(self.__doc__)
            return
        if words[0].isdecimal():
            kind = words[1] if len(words) > 1 else "float"
            count = int(words[2]) if len(words) > 2 else MANY
            values = read(memory_of(UB_POSITION) + int(words[0]), count, kind)
            print(f"UB byte {words[0]}, {kind}: {', '.join(map(number, values))}")
            return
        count = int(words[1]) if len(words) > 1 else MANY
        print(show(gdb.parse_and_eval(words[0]), count))


def start():
    for line in (
        "set confirm off", "set pagination off", "set width 0", "set startup-with-shell off",
        "set breakpoint pending on", "set print thread-events off", "set print pretty off",
        "set print frame-info source-line", "set debuginfod enabled off",
        "handle SIGALRM SIGPROF nostop noprint pass", "skip -gfi /usr/*",
        f"skip -gfi {SETTINGS['ours']}/*", f"skip -gfi {SETTINGS['ours']}/*/*",
        f"skip -gfi {SETTINGS['ours']}/*/*/*",
    ):  # fmt: skip
        try:
            gdb.execute(line, to_string=True)
        except gdb.error:  # an older gdb lacks a setting
            continue
    Where()
    Ub()
    Finding("twin_found", internal=True)
    if SETTINGS["core"] is not None:
        Begin("twin_begins", internal=True)
    gdb.events.stop.connect(on_stop)
    gdb.events.exited.connect(on_exit)
    print("npusmith: next, step, continue, print X as ever; place: the finding and the variables; "
          "ub TENSOR [COUNT]; quit")  # fmt: skip
    gdb.execute("run")


start()
