"""Kernels that run side by side: which flags they post and wait for, and what that means.

The cube core of a block and its vector cores count posts of each flag. What a core did before a
post has been done for whoever has waited for it; that a counter of the chip holds 15 posts at most
is checked by what the poster has been told, whatever the cores' speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from npusmith.ir.launches import BLOCK_VECTOR_CORES, each_launch, flag_names, flags, side_by_side
from npusmith.ir.nodes import Combine, Kernel, Program, SyncCores
from npusmith.ir.walk import statements
from npusmith.lang.core import Core
from npusmith.lang.log import Log
from npusmith.lang.memory import Array
from npusmith.target.cube import MOST_FLAGS, MOST_POSTS


def check_flags(program: Program, file: str) -> Log:
    """Who runs beside whom, and that each flag is posted on one side and awaited on the other."""
    log = Log(file, program.host.name)
    launches = program.host.launches
    if launches[0].beside:
        log.add("lang-flag", "the first launch has none before it", launches[0].line)
        return log
    for group in side_by_side(each_launch(program)):
        line = group[-1].host.launch.line
        kinds = [part.kernel.is_cube for part in group]
        if len(group) > 2 or (len(group) == 2 and kinds[0] is kinds[1]):
            log.add("lang-flag", "what runs side by side is not one kernel of either kind", line)
        elif len({part.host.launch.loop for part in group}) > 1:
            log.add("lang-flag", "one is in a loop, and what runs beside it is not", line)
        else:
            _check_group([part.kernel for part in group], log)
    if (count := len(flag_names(program))) > MOST_FLAGS:
        message = f"{count} flags"
        log.add("lang-flag", message, launches[0].line, legal=f"at most {MOST_FLAGS} names")
    return log


def _check_group(kernels: Sequence[Kernel], found: Log) -> None:
    if len(kernels) == 1:
        others = Kernel("", (), (), (), ())
        pairs = [(kernels[0], others)]
    else:
        pairs = [(kernels[0], kernels[1]), (kernels[1], kernels[0])]
    for own, other in pairs:
        log = Log(found.file, own.name)
        posts, waits = flags(own)
        there = flags(other)
        what = f"in {other.name!r}, which runs beside it" if other.name else "beside it"
        for name, post in posts.items():
            if name not in there[1]:
                log.add("lang-flag", f"nothing waits for {name!r} {what}", post)
            if name in waits:
                log.add("lang-flag", f"{own.name!r} posts {name!r} and waits for it", post)
        for name, wait in waits.items():
            if name not in there[0]:
                log.add("lang-flag", f"nothing posts {name!r} {what}", wait)
        for stmt in statements(own.body) if other.name else ():
            if isinstance(stmt, Combine | SyncCores):
                message = f"barrier of all cores while {other.name!r} runs beside this kernel"
                log.add("lang-flag", message, stmt, hint="a launch of its own behind both")
        found.errors += log.errors


# -------------------------------------------------------------------------------- what it means


@dataclass(frozen=True, slots=True)
class _Message:
    """What a core knew when it posted: stores of all cores, and who had waited how often."""

    known: Array
    waited: Counter[tuple[str, int]]


@dataclass(slots=True)
class Flags:
    """Posts and waits of one core of a block."""

    core: Core
    others: list[Flags] = field(default_factory=list)  # the other side of its block
    posted: dict[str, list[_Message]] = field(default_factory=dict)
    waited: Counter[tuple[str, int]] = field(default_factory=Counter)  # as far as this core knows

    def post(self, flag: str) -> None:
        """What this core has done so far is done for those who wait for it."""
        when = self.core.when
        sent = self.posted.setdefault(flag, [])
        sent.append(_Message(when.post(), self.waited.copy()))
        for other in self.others:
            ahead = len(sent) - self.waited[flag, other.core.when.core]
            if ahead > MOST_POSTS:
                message = f"{flag!r} may be {ahead} posts ahead of those who wait for it"
                raise self.core.fail("lang-flag", message)

    @property
    def turns(self) -> int:
        """Posts and waits of this core so far."""
        return sum(map(len, self.posted.values())) + sum(self.waited.values())

    def is_posted(self, flag: str) -> bool:
        """Whether the other side has posted once more than this core has waited for."""
        turn = self.waited[flag, self.core.when.core]
        return all(len(other.posted.get(flag, ())) > turn for other in self.others)

    def wait(self, flag: str) -> None:
        """This core knows what the other side had done before its post."""
        own = flag, self.core.when.core
        turn = self.waited[own]
        for other in self.others:
            message = other.posted[flag][turn]
            self.core.when.learn(message.known)
            self.waited |= message.waited
        self.waited[own] = turn + 1

    def finish(self) -> None:
        """At the end everything that was posted has been waited for."""
        for flag, sent in self.posted.items():
            for other in self.others:
                waits = other.waited[flag, other.core.when.core]
                if waits != len(sent):
                    message = f"{flag!r} is posted {len(sent)} times and awaited {waits} times"
                    raise self.core.fail("lang-flag", message)


def tell_each_other(cube: Sequence[Core], vector: Sequence[Core]) -> list[Flags]:
    """Give the cores of two kernels that run side by side their flags, block by block."""
    found: list[Flags] = []
    for at, one in enumerate(cube):
        own = Flags(one)
        beside = vector[at * BLOCK_VECTOR_CORES : (at + 1) * BLOCK_VECTOR_CORES]
        own.others = [Flags(core, [own]) for core in beside]
        for each in (own, *own.others):
            each.core.flags = each
            found.append(each)
    return found
