"""Kernels that run side by side: what their flags mean, and what is refused whatever cores do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch
from npusmith.ir.text import show
from npusmith.lang import interpret, legal, parse
from npusmith.plan.estimate import WAIT, estimate
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
# Each block squares its own 16 x 16 matrix again and again; vector cores add up what comes of it.
TEXT = """
TURNS = 20
AHEAD = 2

@host
def host(x, y):
    blocks = 2
    launch(squares, blocks, t=blocks * AHEAD * 256)
    launch(sums, blocks, t=blocks * AHEAD * 256, beside=True)

@kernel
def squares(x: input(float16), t: scratch(float32)):
    a1 = l1(16, 16, float16)
    b1 = l1(16, 16, float16)
    a0 = l0a(16, 16, float16)
    b0 = l0b(16, 16, float16)
    c0 = l0c(16, 16, float32)
    for turn in range(TURNS):
        if turn >= AHEAD:
            wait("read")
        with copy_in:
            load(a1, x[core_id() * 256], 16, rows=16, pitch=16)
            load(b1, x[core_id() * 256], 16, rows=16, pitch=16)
        with split:
            load(a0, a1, 16, 16)
            load(b0, b1, 16, 16)
        with compute:
            mmad(c0, a0, b0, 16, 16, 16, False)
        with copy_out:
            store(t[(core_id() * AHEAD + turn % AHEAD) * 256], c0, 16, rows=16, pitch=16)
        post("square")

@kernel
def sums(y: output(float32), t: scratch(float32)):
    tt = ub(128, float32)
    at = ub(128, float32)
    yt = ub(128, float32)
    block = core_id() // 2
    with compute:
        duplicate(at, 0.0, 128)
    for turn in range(TURNS):
        wait("square")
        with copy_in:
            load(tt, t[(block * AHEAD + turn % AHEAD) * 256 + core_id() % 2 * 128], 128)
        with compute:
            add(at, at, tt, 128)
        if turn + AHEAD < TURNS:
            post("read")
    with compute:
        adds(yt, at, 0.0, 128)
    with copy_out:
        store(y[core_id() * 128], yt, 128)
"""


def run(text: str) -> np.ndarray:
    program = legal(text, "beside.tile.py", CHIP)
    x = np.arange(512, dtype=np.float16) % 7
    return interpret(program, CHIP, [x], [((512,), DType.FLOAT32)])[0]


def test_vector_cores_follow_the_cube_core_of_their_block() -> None:
    x = (np.arange(512, dtype=np.float32) % 7).reshape(2, 16, 16)
    assert np.array_equal(run(TEXT), (20 * (x @ x)).reshape(-1))


def test_the_text_reads_as_it_prints() -> None:
    program = legal(TEXT, "beside.tile.py", CHIP)
    assert [item.beside for item in program.host.launches] == [False, True]
    assert parse(show(program)) == program


def test_the_estimate_of_a_pair_is_that_of_the_longer_one_and_what_it_waits_for() -> None:
    beside = legal(TEXT, "beside.tile.py", CHIP)
    apart = replace(
        beside, host=replace(beside.host, launches=tuple(
            replace(item, beside=False) for item in beside.host.launches))
    )  # fmt: skip
    alone = [
        estimate(replace(part, host=replace(part.host, launches=(replace(
            part.host.launch, beside=False),))), {"x": (512,), "y": (512,)}, CHIP)
        for part in each_launch(beside)
    ]  # fmt: skip
    shapes = {"x": (512,), "y": (512,)}
    together, after = (estimate(item, shapes, CHIP) for item in (beside, apart))
    assert max(alone) < together < after - WAIT


POSTED = '        if turn + AHEAD < TURNS:\n            post("read")\n'
WAITED = '        if turn >= AHEAD:\n            wait("read")\n'
ALONE = TEXT.replace(POSTED, "").replace(WAITED, "")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (TEXT.replace(", beside=True", ""), "lang-flag", "beside it"),
        (TEXT.replace('post("square")', "pass"), "lang-flag", "nothing posts 'square'"),
        (TEXT.replace(POSTED, ""), "lang-flag", "nothing posts 'read'"),
        (TEXT.replace('wait("square")', 'sync_cores()'), "lang-flag", "runs beside"),
        (TEXT.replace('        wait("square")', '        wait("square")\n        post("square")'),
         "lang-flag", "nothing waits for 'square'"),
        (TEXT.replace("launch(squares, blocks, t=blocks * AHEAD * 256)\n    ", ""), "lang-flag",
         "first launch"),
        (TEXT.replace('        if turn + AHEAD < TURNS:\n            post',
                      '        if value(at) < 0.0:\n            post'), "lang-divergent", "post"),
        (TEXT.replace('            mmad', '            post("square")\n            mmad'),
         "lang-stage", "post stands in compute"),
        (TEXT.replace('post("square")', "post(square)"), "lang-operands", "name of a flag"),
    ],
)  # fmt: skip
def test_what_the_text_shows_is_refused_by_the_checker(text: str, code: str, said: str) -> None:
    with pytest.raises(LangError) as caught:
        legal(text, "beside.tile.py", CHIP)
    assert caught.value.code == code and said in caught.value.message


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        # nothing comes back: buffers are stored again while they may be read
        (ALONE.replace("TURNS = 20", "TURNS = 10"), "lang-race", "another core stores"),
        # each turn has a buffer of its own: 20 posts may be ahead of the first wait
        (ALONE.replace("AHEAD = 2", "AHEAD = 20"), "lang-flag", "16 posts ahead"),
        # the last two answers are left over
        (TEXT.replace(POSTED, '        post("read")\n'), "lang-flag", "awaited 18 times"),
        # a buffer is stored again one turn too early
        (TEXT.replace("turn >= AHEAD", "turn > AHEAD").replace(
            "turn + AHEAD < TURNS", "turn + AHEAD + 1 < TURNS"),
         "lang-race", "another core stores"),
        # the first turn waits for what follows it
        (TEXT.replace("        if turn >= AHEAD:\n    ", ""), "lang-flag", "never posted"),
        (TEXT.replace('wait("square")', 'if core_id() % 2 == 0:\n            wait("square")'),
         "lang-race", "another core stores"),
    ],
)  # fmt: skip
def test_what_a_run_shows_is_refused_whatever_the_order_of_cores(
    text: str, code: str, said: str
) -> None:
    with pytest.raises(LangError) as caught:
        run(text)
    assert caught.value.code == code and said in caught.value.message
