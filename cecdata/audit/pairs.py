"""Real errors in pairs of source and target: single characters, and all other kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cecdata.common.errors import InputError
from cecdata.hanzi.characters import is_han
from cecdata.hanzi.edits import Edit, align


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of a file.

    `substitutions` (right, wrong) and `others` (kind) count tokens; two neighbours that changed
    places count as one `swapped` and no substitution. `neighbouring` counts substitutions next to
    another one, which suggest a wrong word rather than a wrong character; `words` counts the runs
    of two or more of these.
    """

    pairs: int = 0
    wrong_pairs: int = 0
    neighbouring: int = 0
    substitutions: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    words: int = 0

    @property
    def tokens(self) -> int:
        """Return the number of characters that were replaced by another one."""
        return self.substitutions.total()


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (source, target) of every line; empty lines are skipped.

    The first line may name the columns: it then has the cells `source` and `target`. Without such a
    line there are two columns. Raises InputError, with the line's number, for any other line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 text file") from error
    columns = None
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.rstrip("\r").split("\t")
        if cells == [""]:
            continue
        if columns is None and {"source", "target"} <= set(cells):
            columns = cells
        elif len(cells) != len(columns or "ab"):
            count = f"{len(cells)} columns" if len(cells) > 1 else "no tab"
            raise InputError(
                f"{path}:{number}: {count}; every line must be a source, a tab and "
                "its target, unless the first line names the columns `source` and `target`"
            )
        elif columns is None:
            yield cells[0], cells[1]
        else:
            yield cells[columns.index("source")], cells[columns.index("target")]


def read_errors(path: Path) -> Errors:
    """Read all errors of a file of pairs; raise InputError if there is none."""
    errors = errors_of(read_pairs(path))
    if not errors.tokens and not errors.others:
        raise InputError(f"{path}: {errors.pairs} pairs and no error; source and target are equal")
    return errors


def errors_of(pairs: Iterator[tuple[str, str]]) -> Errors:
    """Return the errors of the pairs, by minimal alignment.

    >>> errors = errors_of(iter([("我门去公圆。", "我们去公园。")]))
    >>> sorted(errors.substitutions)
    [('们', '门'), ('园', '圆')]
    """
    substitutions: Counter[tuple[str, str]] = Counter()
    others: Counter[str] = Counter()
    count = wrong = neighbouring = words = 0
    for source, target in pairs:
        count += 1
        if source == target:
            continue
        wrong += 1
        edits, swaps = _without_swaps(align(source, target), target)
        others["swapped"] += swaps
        positions = [edit.start for edit in edits if _single(edit)]
        neighbouring += sum(at - 1 in positions or at + 1 in positions for at in positions)
        words += sum(at - 1 not in positions and at + 1 in positions for at in positions)
        for edit in edits:
            if _single(edit):
                substitutions[edit.target, edit.source] += 1
            else:
                others[_kind(edit, target)] += 1
    return Errors(count, wrong, neighbouring, substitutions, +others, words)


def _without_swaps(edits: Sequence[Edit], target: str) -> tuple[list[Edit], int]:
    """Return the edits without swaps of two neighbours, and the number of these swaps."""
    kept: list[Edit] = []
    swaps = 0
    for edit in edits:
        if kept and _swapped(kept[-1], edit, target):
            kept.pop()
            swaps += 1
        else:
            kept.append(edit)
    return kept, swaps


def _swapped(first: Edit, second: Edit, target: str) -> bool:
    """Return whether two edits are a swap, as 典字 for 字典."""
    if _single(first) and _single(second):
        mutual = (first.target, first.source) == (second.source, second.target)
        return mutual and first.end == second.start
    lost_and_gained = not first.source and not second.target and first.target == second.source
    gained_and_lost = not first.target and not second.source and first.source == second.target
    between = target[first.end : second.start]
    moved = first.target or first.source
    return (lost_and_gained or gained_and_lost) and len(between) == len(moved) == 1


def _single(edit: Edit) -> bool:
    one = len(edit.target) == len(edit.source) == 1
    return one and is_han(ord(edit.target)) and is_han(ord(edit.source))


def _kind(edit: Edit, target: str) -> str:
    """Return the kind of an edit that does not replace one Han character by another."""
    from cecdata.hanzi.components import splits

    old, new = edit.target, edit.source
    if not any(is_han(ord(sign)) for sign in old + new):
        return "symbol"
    if not new:
        return "missing"
    if not old:
        beside = target[max(0, edit.start - len(new)) : edit.start], target[edit.end :][: len(new)]
        return "repeated" if new in beside else "redundant"
    if len(old) == 1 and any(split.parts == new for split in splits(old)):
        return "split"
    if len(new) == 1 and any(split.parts == old for split in splits(new)):
        return "merged"
    if sorted(old) == sorted(new):
        return "swapped"
    return "rewritten"
