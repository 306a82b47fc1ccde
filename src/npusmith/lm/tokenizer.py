"""Byte-level BPE for tile programs: built, saved and read here, without any library.

The file is a `tokenizer.json` in the form of Hugging Face's tokenizers, so that training reads the
very same file with `PreTrainedTokenizerFast`. Text is first cut into pieces by PATTERN; a word of
the language, an operator and a newline are one token each, digits stand alone, and four spaces are
one indent. Names of operations stay spelled out, so that a name never seen in training can be
copied from a card in the prompt. Text never becomes a special token, whatever it says.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from npusmith.errors import NpusmithError, Place
from npusmith.lang.words import CHIP_FACTS, DTYPES, EXPRESSIONS, MEMORIES, OPERATIONS, STAGES
from npusmith.target.intrinsics import INTRINSICS

FILE = "tokenizer.json"
PAD, END, ANSWER = "<|pad|>", "<|end|>", "<|answer|>"
SPECIAL = (PAD, END, ANSWER)  # with the ids 0, 1, 2
VOCABULARY = 2048
_MOST_BYTES = 16 << 20
_MOST_WORDS = 10_000  # that merges are learnt from; rarer ones are spelled by what those give
_INDENT = " " * 4

_PYTHON = (
    "def", "for", "in", "range", "with", "if", "elif", "else", "and", "or", "not", "pass",
    "True", "False", "inf",
)  # fmt: skip
_HOST = (
    "host", "kernel", "input", "output", "scratch", "launch", "part", "chip", "shape", "size",
    "rows", "pitch", "atomic", "copies", "relu", "bias", "transposed", "TILE",
)  # fmt: skip
_STATEMENTS = tuple(name for name in OPERATIONS if name not in INTRINSICS)
WORDS = tuple(
    dict.fromkeys(
        (*_PYTHON, *_HOST, *STAGES, *DTYPES, *MEMORIES, *EXPRESSIONS, *CHIP_FACTS, *_STATEMENTS)
    )
)
OPERATORS = (
    "==", "!=", "<=", ">=", "//", '"""', "+", "-", "*", "/", "%", "<", ">", "=", "(", ")", "[",
    "]", ",", ":", ".", "@", '"',
)  # fmt: skip


def _pattern() -> str:
    """What cuts text into pieces; the same to Python's `re` and to the tokenizers library."""
    numbered = sorted((word for word in WORDS if any(map(str.isdigit, word))), key=len)[::-1]
    several = sorted((word for word in OPERATORS if len(word) > 1), key=len)[::-1]
    return "|".join(
        (
            r"\n",
            _INDENT,
            rf" ?(?:{'|'.join(numbered)})(?![A-Za-z_0-9])",
            r" ?[A-Za-z_]+",
            r" ?[0-9]",
            rf" ?(?:{'|'.join(map(re.escape, several))})",
            r" ?[^ \nA-Za-z_0-9]",
            r" ",
        )
    )


PATTERN = _pattern()
_PIECES = re.compile(PATTERN)


def _alphabet() -> tuple[str, ...]:
    """A printable character for each byte, as in every byte-level BPE since GPT-2."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    moved = iter(range(256, 512))
    return tuple(chr(byte if byte in plain else next(moved)) for byte in range(256))


_ALPHABET = _alphabet()
_BYTES = {char: byte for byte, char in enumerate(_ALPHABET)}


def _letters(piece: str) -> str:
    return "".join(_ALPHABET[byte] for byte in piece.encode("utf-8", "surrogatepass"))


def pieces(text: str) -> list[str]:
    """The pieces of a text; together they are the text."""
    return _PIECES.findall(text)


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary and its merges, in the order in which they were learnt."""

    vocabulary: Mapping[str, int]  # of letters of the byte alphabet
    merges: tuple[tuple[str, str], ...]

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of each id; a special token has none."""
        found = [b""] * (len(SPECIAL) + len(self.vocabulary))
        for letters, at in self.vocabulary.items():
            found[at] = bytes(_BYTES[char] for char in letters)
        return tuple(found)

    @property
    def size(self) -> int:
        return len(SPECIAL) + len(self.vocabulary)

    @property
    def end(self) -> int:
        return SPECIAL.index(END)

    @property
    def answer(self) -> int:
        return SPECIAL.index(ANSWER)

    @cached_property
    def digest(self) -> str:
        """Of what maps text to ids: two tokenizers with one digest are the same."""
        text = json.dumps([PATTERN, list(self.vocabulary.items()), self.merges])
        return hashlib.sha256(text.encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of a text; none of them is special."""
        found: list[int] = []
        for piece in pieces(text):
            found += self._encode_piece(piece)
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ones are left out, bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.tokens[at] for at in ids).decode("utf-8", "replace")

    @cached_property
    def _encode_piece(self) -> Callable[[str], tuple[int, ...]]:
        ranks = {pair: rank for rank, pair in enumerate(self.merges)}

        @lru_cache(maxsize=1 << 16)
        def encode_piece(piece: str) -> tuple[int, ...]:
            letters = _letters(piece)
            if letters in self.vocabulary:  # `ignore_merges` of the file
                return (self.vocabulary[letters],)
            parts = list(letters)
            while len(parts) > 1:
                pairs = [ranks.get(pair, len(ranks)) for pair in pairwise(parts)]
                best = min(pairs)
                if best == len(ranks):
                    break
                parts = _merged(parts, self.merges[best])
            return tuple(self.vocabulary[part] for part in parts)

        return encode_piece

    def save(self, folder: Path) -> Path:
        """Writes tokenizer.json."""
        path = folder / FILE
        path.write_text(document(self) + "\n", encoding="utf-8")
        return path


def _merged(parts: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """The parts with every such pair joined, from the left."""
    found: list[str] = []
    at = 0
    while at < len(parts):
        if tuple(parts[at : at + 2]) == pair:
            found.append(parts[at] + parts[at + 1])
            at += 2
        else:
            found.append(parts[at])
            at += 1
    return found


def build(texts: Iterable[str], size: int = VOCABULARY) -> Tokenizer:
    """A tokenizer of at most `size` ids, learnt from texts; the same texts give the same one."""
    vocabulary = {letter: len(SPECIAL) + at for at, letter in enumerate(_ALPHABET)}
    whole = (space + word for word in (*WORDS, *OPERATORS) for space in ("", " "))
    for word in ("\n", _INDENT, *whole):
        vocabulary.setdefault(_letters(word), len(SPECIAL) + len(vocabulary))
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(pieces(text))
    words = {
        tuple(letters): count
        for piece, count in counts.most_common(_MOST_WORDS)
        if piece.strip() not in INTRINSICS and (letters := _letters(piece)) not in vocabulary
    }
    merges: list[tuple[str, str]] = []
    while len(SPECIAL) + len(vocabulary) < size and (pair := _most_frequent(words)):
        merges.append(pair)
        vocabulary.setdefault("".join(pair), len(SPECIAL) + len(vocabulary))
        words = _joined(words, pair)
    return Tokenizer(vocabulary, tuple(merges))


def _most_frequent(words: Mapping[tuple[str, ...], int]) -> tuple[str, str] | None:
    """The pair that stands in the words most often, twice at least; of equals the first by name."""
    counts: Counter[tuple[str, str]] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            counts[pair] += count
    best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
    return best if best is not None and counts[best] > 1 else None


def _joined(
    words: Mapping[tuple[str, ...], int], pair: tuple[str, str]
) -> dict[tuple[str, ...], int]:
    return {
        tuple(_merged(word, pair)) if pair[0] in word else word: count
        for word, count in words.items()
    }


# -------------------------------------------------------------------------------------- the file


_SEQUENCE = {name: {"Sequence": {"id": name, "type_id": at}} for at, name in enumerate(("A", "B"))}


def document(words: Tokenizer) -> str:
    """The text of tokenizer.json."""
    return json.dumps(_document(words), ensure_ascii=False)


def _document(words: Tokenizer) -> dict[str, object]:
    special = [
        {
            "id": at, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True,
        }
        for at, text in enumerate(SPECIAL)
    ]  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated"}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{**split, "invert": False}, {**level, "use_regex": False}],
        },
        # adds nothing; the form in which transformers save it
        "post_processor": {
            "type": "TemplateProcessing", "single": [_SEQUENCE["A"]],
            "pair": [_SEQUENCE["A"], _SEQUENCE["B"]], "special_tokens": {},
        },
        "decoder": {**level, "use_regex": False},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {text: at for at, text in enumerate(SPECIAL)} | dict(words.vocabulary),
            "merges": [list(pair) for pair in words.merges],
        },
    }  # fmt: skip


def read(folder: Path) -> Tokenizer:
    """The tokenizer of a folder. Raises lm-tokenizer and file-missing.

    Only a file of this module is taken: another one would cut text into other pieces.
    """
    path = folder / FILE
    if not path.is_file():
        raise NpusmithError("file-missing", f"{folder} has no {FILE}", Place(str(path)))
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        data = json.loads(path.read_text(encoding="utf-8"))
        model = data["model"]
        vocabulary = {
            str(text): int(at) for text, at in model["vocab"].items() if text not in SPECIAL
        }
        words = Tokenizer(vocabulary, tuple((str(a), str(b)) for a, b in model["merges"]))
        _check(words, data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NpusmithError(
            "lm-tokenizer", f"{path} is no tokenizer of npusmith", Place(str(path)),
            seen=f"{type(error).__name__}: {error}"[:200],
        ) from error  # fmt: skip
    return words


def _check(words: Tokenizer, data: Mapping[str, object]) -> None:
    """Raises ValueError unless the file is what `save` writes of these words."""
    ids = sorted(words.vocabulary.values())
    if ids != list(range(len(SPECIAL), words.size)):
        raise ValueError("the ids have gaps")
    if not set(_ALPHABET) <= set(words.vocabulary):
        raise ValueError("a byte has no id")
    if any(set(text) - set(_BYTES) or not text for text in words.vocabulary):
        raise ValueError("a token that is no text of bytes")
    if any("".join(pair) not in words.vocabulary for pair in words.merges):
        raise ValueError("a merge without a token")
    if data != json.loads(document(words)):
        raise ValueError("other pieces, special tokens or rules than npusmith's")
