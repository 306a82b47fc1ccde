"""The model in NumPy: its file, its logits against transformers', its answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from stages_corpus import programs

from npusmith.errors import NpusmithError
from npusmith.lm import tokenizer as own
from npusmith.lm import weights as stored
from npusmith.lm.automaton import Guided, Masks
from npusmith.lm.generate import Sampling, choose, generate
from npusmith.lm.grammar import open_grammar
from npusmith.lm.llama import Llama
from npusmith.lm.weights import Architecture, Weights

# Of logits, which are about 5 here: two orders of summation in float32.
BOUND = 1e-4
SHAPE = Architecture(
    vocabulary=1024, width=64, layers=2, heads=4, groups=2, head=16, hidden=96, context=512,
    theta=10_000, epsilon=1e-6,
)  # fmt: skip


def random_weights(shape: Architecture = SHAPE, digest: str = "d") -> Weights:
    draw = np.random.default_rng(5)
    tensors = {
        name: (draw.normal(0, 0.1, size) + (len(size) == 1)).astype(np.float32)
        for name, size in shape.shapes()
    }
    return Weights(shape, tensors, digest)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lm") / stored.FILE
    stored.write(path, random_weights())
    return path


@pytest.fixture(scope="module")
def model(file: Path) -> Llama:
    return Llama(stored.read(file))


def test_a_row_keeps_its_numbers_within_half_a_step_of_its_scale(file: Path) -> None:
    before, after = random_weights(), stored.read(file)
    assert after.architecture == SHAPE and after.tokenizer == "d"
    for name, tensor in before.tensors.items():
        error = np.abs(after.tensors[name] - tensor)
        if tensor.ndim == 1:
            assert not error.any()
        else:
            step = np.abs(tensor).max(axis=1, keepdims=True) / 127
            assert (error <= step * 0.501).all()
    rows, scale = stored.quantise(np.zeros((2, 3), np.float32))
    assert not rows.any() and (scale == 1).all()


def test_twelve_million_parameters_take_less_than_16_mb(tmp_path: Path) -> None:
    shape = Architecture(
        vocabulary=2048, width=384, layers=6, heads=6, groups=6, head=64, hidden=1024,
        context=4096, theta=10_000, epsilon=1e-6,
    )  # fmt: skip
    tensors = {name: np.ones(size, np.float32) for name, size in shape.shapes()}
    assert 11e6 < sum(item.size for item in tensors.values()) < 13e6
    stored.write(tmp_path / stored.FILE, Weights(shape, tensors, "d"))
    assert (tmp_path / stored.FILE).stat().st_size < 16e6


@pytest.mark.parametrize("what", ["cut", "short", "changed", "header", "foreign", "shape", "empty"])
def test_a_file_that_is_damaged_is_named(what: str, file: Path, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    if what == "cut":
        del data[-1]
    elif what == "short":
        del data[length // 2 :]
    elif what == "changed":
        data[-5] ^= 1
    elif what == "header":
        data[:8] = (1 << 62).to_bytes(8, "little")
    elif what == "empty":
        data.clear()
    else:
        if what == "foreign":
            del header["__metadata__"]
        else:
            header["model.norm.weight"]["shape"] = [1 << 40]
        text = json.dumps(header).encode()
        data[: 8 + length] = len(text).to_bytes(8, "little") + text
    path = tmp_path / stored.FILE
    path.write_bytes(data)
    with pytest.raises(NpusmithError, match="lm-weights"):
        stored.read(path)


def test_weights_that_are_not_finite_or_not_whole_are_not_written(tmp_path: Path) -> None:
    weights = random_weights()
    broken = dict(weights.tensors)
    broken["model.norm.weight"] = np.full(64, np.nan, np.float32)
    lacking = {name: item for name, item in weights.tensors.items() if "q_proj" not in name}
    for tensors in (broken, lacking):
        with pytest.raises(NpusmithError, match="lm-weights"):
            stored.write(tmp_path / "x", Weights(SHAPE, tensors, "d"))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_transformers(groups: int, tied: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra train is not installed")
    import torch

    shape = SHAPE.model_copy(update={"groups": groups, "tied": tied, "theta": 50_000.0})
    weights = random_weights(shape)
    config = transformers.LlamaConfig(
        vocab_size=1024, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=groups, head_dim=16, intermediate_size=96, rms_norm_eps=1e-6,
        tie_word_embeddings=tied, max_position_embeddings=512,
        rope_parameters={"rope_theta": 50_000.0, "rope_type": "default"},
    )  # fmt: skip
    theirs = transformers.LlamaForCausalLM(config).eval()
    given = {name: torch.tensor(item) for name, item in weights.tensors.items()}
    if tied:
        given["lm_head.weight"] = given["model.embed_tokens.weight"]
    theirs.load_state_dict(given)
    ours = Llama(weights)
    draw = np.random.default_rng(1)
    prompts = [draw.integers(3, 1024, size).tolist() for size in (1, 33, 200)]
    ids, cache = ours.open(prompts, 0)
    found = ours.forward(ids, cache, every=True)
    for row, prompt in enumerate(prompts):
        with torch.no_grad():
            wanted = theirs(torch.tensor([prompt])).logits[0].numpy()
        assert np.abs(wanted).max() > 1
        assert np.abs(found[row, -len(prompt) :] - wanted).max() < BOUND


def test_reading_one_by_one_is_reading_at_once(model: Llama) -> None:
    prompts = [[5, 9, 700, 3], [8]]
    ids, cache = model.open(prompts, 3)
    last = model.forward(ids, cache)
    for at in (11, 12, 13):
        last = model.forward(np.array([[at], [at + 1]]), cache)
    whole = [[*prompts[0], 11, 12, 13], [*prompts[1], 12, 13, 14]]
    again, other = model.open(whole, 0)
    assert np.abs(model.forward(again, other) - last).max() < BOUND
    alone, single = model.open(whole[1:], 0)
    assert np.abs(model.forward(alone, single)[0] - last[1]).max() < BOUND


def test_the_same_seed_gives_the_same_answers_and_another_one_others(model: Llama) -> None:
    def answers(seed: int, prompts: list[list[int]]) -> list[tuple[int, ...]]:
        told = Sampling(temperature=1.0, tokens=20, seed=seed)
        return [item.ids for item in generate(model, prompts, told, end=1)]

    first = answers(3, [[7, 8], [7, 8]])
    assert first == answers(3, [[7, 8], [7, 8]])
    assert first[0] != first[1]
    assert first != answers(4, [[7, 8], [7, 8]])


def test_an_answer_ends_with_its_end_and_leaves_the_batch() -> None:
    weights = random_weights()
    ids = generate(Llama(weights), [[5]], Sampling(temperature=0, tokens=6), end=-1)[0].ids
    end = ids[3]
    first = ids.index(end)
    model = Llama(weights)
    alone, other = generate(model, [[5], [600, 2]], Sampling(temperature=0, tokens=6), end=end)
    assert alone.ids == ids[:first] and alone.finished
    assert len(other.ids) == 6 or other.finished


def test_a_prompt_without_room_for_an_answer_is_refused(model: Llama) -> None:
    with pytest.raises(NpusmithError, match="lm-context"):
        generate(model, [[5] * 512], Sampling(), end=1)
    (answer,) = generate(model, [[5] * 510], Sampling(temperature=0), end=-1)
    assert len(answer.ids) == 2 and not answer.finished


def test_top_p_draws_from_the_likeliest_alone_in_their_proportion() -> None:
    logits = np.log(np.array([0.1, 0.5, 0.1, 0.3], np.float32))
    stream = np.random.default_rng(0)
    drawn = [choose(logits, Sampling(temperature=1, top_p=0.7), stream) for _ in range(4000)]
    assert set(drawn) == {1, 3}
    assert abs(drawn.count(1) / 4000 - 0.5 / 0.8) < 0.03
    masked = np.array([-np.inf, 0, -np.inf, -np.inf], np.float32)
    assert choose(masked, Sampling(temperature=2, top_p=1), stream) == 1
    assert choose(logits, Sampling(temperature=0), stream) == 1


def test_a_random_model_under_the_mask_writes_what_a_program_can_begin_with() -> None:
    tokenizer = own.build([text for _, text in programs()], 1024)
    shape = SHAPE.model_copy(update={"vocabulary": tokenizer.size})
    model = Llama(random_weights(shape))
    grammar = open_grammar("program")
    masks = Masks(grammar, tokenizer.tokens, tokenizer.end)
    told = Sampling(temperature=1.0, tokens=40)
    prompts = [[tokenizer.answer]] * 3
    free = generate(model, prompts, told, tokenizer.end)
    held = generate(model, prompts, told, tokenizer.end, [Guided(masks) for _ in prompts])
    for answer in held:
        text = tokenizer.decode(answer.ids).encode()
        assert grammar.read(grammar.start(), text) >= 0
        assert answer.masked > 0
    texts = [tokenizer.decode(answer.ids).encode() for answer in free]
    assert all(grammar.read(grammar.start(), text) < 0 for text in texts)
