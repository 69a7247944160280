"""The compiled reader and the one in Python must give the same results for every file.

Files of the corpus are changed at random, as a broken program or disk might change them, and read by both readers:
plain and compressed, cut into chunks that end anywhere. Where they differ, or where an error is not Tiewise's own, the
input is made as small as it can be, shown, and kept.
"""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from fuzzing import Fuzzer, main  # noqa: E402

from readers import differences  # noqa: E402

WORDS = [
    *b"q1 q2 q-long-name d1 d2 d3 a ab abcdefgh abcdefghijklmnopq Q0 tag # #x query-id corpus-id score".split(),
    *b"0 1 2 +3 -1 1.0 0.5 2.25 1e-3 .5 2. inf -inf nan 1e400 1e-400 5e-324 1_000 0x10 --1 1,5".split(),
    *b"0.30000000000000004 123456789012345678901 9007199254740991 9007199254740992".split(),
    *b"9223372036854775807 -9223372036854775808 \xff \xc3\xa9 \xe6\x97\xa5 \xed\xa0\x80 \xd9\xa3".split(),
    b"", b"\0", b"\xef\xbb\xbf", b"\xc2\xa0", b"\x85", b"\x1c", b"x" * 70, b"9" * 400, b"0." + b"3" * 40,
]  # fmt: skip
BLANKS = [b" ", b"\t", b"\n", b"\r\n", b"\r", b"\x0b", b"\x0c", b"  ", b"\t\t", b" \t", b"\n\n", b"\n#", b"\n "]


def changed(text: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A text with one change."""
    place, other = rng.randint(0, len(text)), rng.randint(0, len(text))
    low, high = min(place, other), max(place, other)
    lines = text.splitlines(keepends=True) or [b""]
    line = rng.randrange(len(lines))
    words = lines[line].split(b"\t" if b"\t" in lines[line] else None) or [b""]
    match rng.randrange(12):
        case 0:
            return text[:place] + rng.choice(WORDS + BLANKS) + text[place:]
        case 1:
            return text[:place] + rng.randbytes(1) + text[place + 1 :]
        case 2:
            return text[:low] + text[min(high, low + 20) :]
        case 3:
            return text[:place]
        case 4:
            return text[:place] + text[low : min(high, low + 200)] + text[place:]
        case 5:
            return b"".join(rng.sample(lines, len(lines)))
        case 6:
            lines.insert(rng.randrange(len(lines)), lines[line])
        case 7:
            lines += (rng.choice(others).splitlines(keepends=True) or [b""])[:10]
        case 8:
            return text.replace(rng.choice(BLANKS[:3]), rng.choice(BLANKS))
        case _:
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            lines[line] = (b"\t" if b"\t" in lines[line] else rng.choice(BLANKS[:1] * 9 + BLANKS)).join(words) + b"\n"
    return b"".join(lines)


def disagreement(text: bytes, kind: str, folder: Path) -> str:
    """How the readers differ on a text; nothing if they agree."""
    rng = random.Random(text)
    chunk = rng.choice([1 << 20, rng.randint(8, 64), rng.randint(64, 1000)])
    threads = 3 if rng.random() < 0.05 else 1
    path = folder / "file"
    if rng.random() < 0.1:
        text = gzip.compress(text, mtime=0)
        text = text[: len(text) - rng.choice([0, 0, 1, 30])]
    path.write_bytes(text)
    try:
        found = differences(path, chunk, threads)
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    return "\n".join([f"chunks of {chunk} bytes, {threads} threads", *found]) if found else ""


CORPUS = [path.read_bytes() for path in sorted((HERE / "corpus").iterdir())]


def draw(rng: random.Random) -> tuple[str, bytes]:
    """A file of the corpus with some changes."""
    text = rng.choice(CORPUS)
    for _ in range(rng.randint(1, 6)):
        text = changed(text, CORPUS, rng)[:4000]
    return "", text


FUZZER = Fuzzer(draw, disagreement)

if __name__ == "__main__":
    main(FUZZER, __doc__, "both readers say the same of each")
