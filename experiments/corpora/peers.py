"""Write "source TAB target" lines with a generator from PyPI, at its defaults but for the rate.

    python experiments/corpora/peers.py nlpcda|jionlp|textnoisr|zh-mistake-text-gen SEED < SENTENCES

Where the generator has a rate, it is set to about one error a sentence. The script runs in an
environment of its own, which needs the generator and nothing of this project.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable

ERRORS = 0.04  # share of the characters, about one a sentence, where the generator takes a rate


def nlpcda(seed: int) -> Callable[[str], str]:
    from nlpcda import Homophone

    smart = Homophone(create_num=2, change_rate=ERRORS, seed=seed)
    return lambda text: smart.replace(text)[-1]


def jionlp(seed: int) -> Callable[[str], str]:
    import jionlp

    def write(text: str) -> str:
        drawn = jionlp.homophone_substitution(text, seed=seed, augmentation_num=1)
        return str(drawn[0]) if drawn else text

    return write


def textnoisr(seed: int) -> Callable[[str], str]:
    from textnoisr.noise import CharNoiseAugmenter

    return CharNoiseAugmenter(ERRORS, actions=("substitute",), seed=seed).add_noise


def zh_mistake_text_gen(seed: int) -> Callable[[str], str]:
    from zh_mistake_text_gen import Pipeline

    random.seed(seed)
    pipeline = Pipeline()
    return lambda text: pipeline(text).incorrect


def main() -> None:
    name, seed = sys.argv[1].replace("-", "_"), int(sys.argv[2])
    with contextlib.redirect_stdout(sys.stderr):  # some generators print a banner
        write = globals()[name](seed)
        lines, failed = [], 0
        for target in sys.stdin.read().split("\n"):
            try:
                source = write(target)
            except Exception as error:  # noqa: BLE001 - the sentence counts as unchanged
                print(f"{name}: {error!r}", file=sys.stderr)
                source, failed = target, failed + 1
            lines.append(f"{source}\t{target}")
    print("\n".join(lines))
    if failed:
        print(f"failed on {failed} of {len(lines)} sentences, kept as they are", file=sys.stderr)


if __name__ == "__main__":
    main()
