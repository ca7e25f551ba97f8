"""Right words that few people write are left alone."""

import random

from cecdata.hanzi.characters import is_han, read_rows
from cectrain.corrector.corrector import Corrector

RAREST = 5  # times that the lexicon counts a word


def test_rare_words_of_the_lexicon_stay():
    """Of a thousand in a plain sentence, one in a hundred is changed at most."""
    rare = [
        word
        for word, count, _ in read_rows("lexicon")
        if int(count) <= RAREST and 2 <= len(word) <= 4 and all(is_han(ord(c)) for c in word)
    ]
    texts = [f"他们谈到了{word}。" for word in random.Random(58).sample(rare, 1000)]
    changed = [made.target for made in Corrector(lm="words").stream(texts) if made.edits]
    assert len(changed) <= 10, changed
