"""The public corrector: texts of any length in, corrections with their edits out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import not_
from threading import Lock

from cecdata.hanzi.characters import is_han
from cectrain.corrector.correction import Correction, Edit, Kept, Proposer, apply
from cectrain.corrector.opening import CHANNEL, COMBINED, open_channel, open_combined, open_policy
from cectrain.corrector.passthrough import filtered, stand_in
from cectrain.corrector.pieces import Piece, pieces

UNFAMILIAR = 0.2  # least share of unreadable Han characters with which a piece is not asked
_FEW = 2  # most unreadable Han characters with which it is asked whatever their share

_CHUNK, _CHUNK_CHARS = 256, 1 << 16  # texts and characters that a stream corrects together


class Corrector:
    """Corrects Chinese spelling; the model is loaded when it is first asked.

    model: `combined` (the noisy channel and the built-in policy), `channel` (the channel alone),
    `combined:FOLDER` (with another policy of the built-in kind, of a run or a model), or any
    `Proposer`; with torch also `builtin` (the policy alone), a folder or a hub id. lm: the
    channel's n-gram model, see `cecdata.ngram.models.find`. confidence: least confidence of an edit
    that is made, 0..1; 0: every edit; None: the default of the model. batch: pieces in a forward
    pass. device: of torch; `auto` is the first GPU, or the processor without one. threads: of the
    processor; 0 takes one for a small model, and torch's default for others. protect: names that
    are not to be changed.

    Threads may share a corrector. `combined` and `channel` work in all of them at once; a policy of
    torch answers one after another. A pickled corrector loads its model again where it is
    unpickled.

    `Corrector().correct("他的病情己经好转。")[0].target` is 他的病情已经好转。
    """

    def __init__(
        self,
        model: str | Proposer = COMBINED,
        *,
        batch: int = 64,
        device: str = "auto",
        threads: int = 0,
        protect: Iterable[str] = (),
        lm: str | None = None,
        confidence: float | None = None,
    ) -> None:
        self._model, self._batch, self._device, self._threads = model, batch, device, threads
        self._protect, self._lm, self._confidence = tuple(protect), lm, confidence
        self._loaded: Proposer | None = None if isinstance(model, str) else model
        self._loading = Lock()

    def __getstate__(self) -> dict[str, object]:
        """Return what to pickle: the names of the model, not its weights and tables."""
        held = {name: value for name, value in vars(self).items() if name != "_loading"}
        return {**held, "_loaded": None if isinstance(self._model, str) else self._model}

    def __setstate__(self, held: dict[str, object]) -> None:
        vars(self).update(held, _loading=Lock())

    @property
    def proposer(self) -> Proposer:
        """The model, loaded. Raises InputError where nothing loads."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load(str(self._model))
            return self._loaded

    def _load(self, model: str) -> Proposer:
        if model == CHANNEL:
            return open_channel(self._lm, self._confidence)
        batch, threads = self._batch, self._threads
        if model.partition(":")[0] == COMBINED:
            return open_combined(model, self._lm, self._confidence, batch=batch, threads=threads)
        return open_policy(
            model, self._confidence, batch=batch, device=self._device, threads=threads
        )

    def correct(self, texts: str | Iterable[str]) -> list[Correction]:
        """Return one correction a text, in order; a single text gives a list of one."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        prepared = [_Text(text, self.proposer) for text in texts]
        proposals = iter(self.proposer.propose([a for one in prepared for a in one.asked()]))
        return [one.correction(proposals, self._protect) for one in prepared]

    def stream(self, texts: Iterable[str]) -> Iterator[Correction]:
        """Yield one correction a text; memory holds a chunk of at most 256 texts."""
        chunk: list[str] = []
        size = 0
        for text in texts:
            chunk.append(text)
            size += len(text)
            if len(chunk) == _CHUNK or size >= _CHUNK_CHARS:
                yield from self.correct(chunk)
                chunk, size = [], 0
        yield from self.correct(chunk)


class _Text:
    """A text, what a model sees of it, and its pieces."""

    def __init__(self, text: str, proposer: Proposer) -> None:
        self.text, self.unread = text, proposer.unread(text)
        self.longest = proposer.longest
        self.seen = text
        if any(self.unread):
            self.seen = "".join(
                stand_in(character, proposer.readable) if unread else character
                for character, unread in zip(text, self.unread, strict=True)
            )
        self.pieces = pieces(self.seen, self.longest)

    def asked(self) -> list[str]:
        """Return the texts that the model is asked, without white space at the ends."""
        return [self._asked(piece) for piece in self.pieces if self._state(piece) == "asked"]

    def correction(self, proposals: Iterator[Sequence[Edit]], names: Sequence[str]) -> Correction:
        """Return the correction by the model's next proposals, one for each piece asked."""
        edits: list[Edit] = []
        kept = self._unreadable()
        for piece in self.pieces:
            state = self._state(piece)
            if state in ("too_long", "unfamiliar"):
                kept.append(self._kept(piece.start, piece.end, state))
            if state != "asked":
                continue
            begin = self._begin(piece)
            own = [
                replace(edit, start=edit.start + begin, end=edit.end + begin)
                for edit in next(proposals)
            ]
            # What is inserted between two pieces belongs to the second.
            mine = [e for e in own if piece.start <= e.start < piece.end and e.end <= piece.end]
            through, others = filtered(self.text, piece.start, piece.end, mine, self.unread, names)
            edits += through
            kept += others
        kept.sort(key=lambda one: (one.start, one.end))
        return Correction(self.text, apply(self.text, edits), tuple(edits), tuple(kept))

    def _asked(self, piece: Piece) -> str:
        return self.seen[piece.context : piece.end].strip()

    def _begin(self, piece: Piece) -> int:
        """Return where in the text the question begins."""
        whole = self.seen[piece.context : piece.end]
        return piece.context + len(whole) - len(whole.lstrip())

    def _state(self, piece: Piece) -> str:
        span = slice(piece.start, piece.end)
        unread = self.unread[span]
        own = set(compress(self.text[span], map(not_, unread)) if any(unread) else self.text[span])
        if not any(is_han(ord(character)) for character in own):
            return "nothing"  # no character that could be wrong
        if any(unread) and self._unfamiliar(self.text[span], unread):
            return "unfamiliar"
        if self.longest is not None and len(self._asked(piece)) > self.longest:
            return "too_long"
        return "asked"

    @staticmethod
    def _unfamiliar(text: str, unread: Sequence[bool]) -> bool:
        """Return whether too many Han characters are unreadable, as in traditional Chinese."""
        han = [is_han(ord(character)) for character in text]
        count = sum(compress(han, unread))
        return count > _FEW and count >= UNFAMILIAR * sum(han)

    def _unreadable(self) -> list[Kept]:
        kept, at = [], 0
        for unread, run in groupby(self.unread):
            end = at + sum(1 for _ in run)
            if unread and not self.text[at:end].isspace():
                kept.append(self._kept(at, end, "unreadable"))
            at = end
        return kept

    def _kept(self, start: int, end: int, reason: str) -> Kept:
        return Kept(start, end, self.text[start:end], reason)
