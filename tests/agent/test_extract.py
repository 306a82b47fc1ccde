"""What is taken out of a reply, and what is said when there is nothing to take."""

from __future__ import annotations

import pytest
from agentcases import PROGRAM, fenced

from npusmith.agent.extract import blocks, find_files, find_program, find_source
from npusmith.agent.talk import Answer, Usage
from npusmith.errors import NpusmithError

PATHS = ("op_host/x.cpp", "op_kernel/x.cpp")


def answer(text: str, finish: str = "stop") -> Answer:
    return Answer(text=text, usage=Usage(prompt=1, completion=1), finish=finish)


def refused(text: str, finish: str = "stop") -> NpusmithError:
    with pytest.raises(NpusmithError) as caught:
        find_program(answer(text, finish))
    return caught.value


def test_the_last_program_counts_and_drafts_in_thoughts_do_not() -> None:
    draft = fenced(PROGRAM.replace("2048", "64"))
    assert (
        find_program(answer(f"{draft}\nBetter:\n{fenced(PROGRAM)}")) == PROGRAM.strip("\n") + "\n"
    )
    thought = f"<think>{fenced(PROGRAM)}</think>I cannot."
    assert refused(thought).code == "reply-no-code"


def test_a_bare_program_needs_no_fence_and_a_long_fence_holds_a_short_one() -> None:
    assert find_program(answer(PROGRAM)) == PROGRAM
    wide = f"````python\n{PROGRAM}# ```\n````\n"
    assert find_program(answer(wide)).endswith("# ```\n")


@pytest.mark.parametrize(
    ("text", "code", "seen"),
    [
        ("I would rather explain the algorithm.", "reply-no-code", ""),
        ("", "reply-no-code", ""),
        (
            "```cpp\n__global__ void k(float *x) { x[blockIdx.x] = 0; }\n```",
            "reply-language",
            "CUDA",
        ),
        ("```python\n@triton.jit\ndef k(x): tl.load(x)\n```", "reply-language", "Triton"),
        ("```python\nimport torch\nclass M(nn.Module): pass\n```", "reply-language", "PyTorch"),
        ('```\n#include "kernel_operator.h"\n```', "reply-language", "C++"),
    ],
)
def test_a_reply_without_a_program_says_what_it_holds(text: str, code: str, seen: str) -> None:
    error = refused(text)
    assert error.code == code
    assert seen in error.seen


def test_code_that_the_limit_of_tokens_cut_is_said_to_be_cut() -> None:
    assert refused(f"```python\n{PROGRAM[:600]}", "length").code == "reply-cut"
    assert refused("Let me think about it", "length").code == "reply-cut"


def test_files_are_found_by_their_paths() -> None:
    text = "```cpp op_host/x.cpp\nhost\n```\n```cpp\n// op_kernel/x.cpp\nkernel\n```\n"
    found = find_files(answer(text), PATHS)
    assert found == {PATHS[0]: "host\n", PATHS[1]: "// op_kernel/x.cpp\nkernel\n"}
    with pytest.raises(NpusmithError) as caught:
        find_files(answer("```cpp op_host/x.cpp\nhost\n```"), PATHS)
    assert caught.value.code == "reply-part"
    assert "op_kernel/x.cpp" in caught.value.message


def test_a_source_is_told_by_its_device_functions() -> None:
    text = "```cpp\nint main() {}\n```\n```cpp\n__global__ __aicore__ void k() {}\n```"
    assert find_source(answer(text)).startswith("__global__ __aicore__")


@pytest.mark.parametrize("piece", ["<think>", "```\n", "``` a\n`", "word ", "~~~~\n", "@kernel\n"])
def test_a_megabyte_of_anything_is_read_in_no_time_worth_a_word(piece: str) -> None:
    text = piece * ((1 << 20) // len(piece))
    blocks(text)
    with pytest.raises(NpusmithError):
        find_program(answer(text))
