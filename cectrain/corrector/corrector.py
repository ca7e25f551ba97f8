"""The public corrector: texts of any length in, corrections with their edits out."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby, islice
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from cecdata.common.errors import UsageError
from cecdata.common.progress import stop_if_given_up
from cecdata.common.settings import require
from cecdata.hanzi.characters import is_han, is_standard
from cectrain.corrector import edit_guard, forms
from cectrain.corrector.correction import (
    Correction,
    Edit,
    Kept,
    Proposer,
    apply_edits,
    move_confidence,
)
from cectrain.corrector.folder import COMBINED
from cectrain.corrector.prose import find_not_prose
from cectrain.corrector.script import SCRIPTS, carry_edits, check_script, is_traditional, simplify
from cectrain.corrector.table import Settings, find_model, refuse_unsupported
from cectrain.corrector.wordlists import Term, Wordlists, sort_terms

if TYPE_CHECKING:
    from cecdata.lm import LanguageModel

UNFAMILIAR = 0.2  # least share of unreadable Han characters with which a piece is not asked
_FEW = 2  # most unreadable Han characters with which it is asked whatever their share

_CHUNK_CHARS = 1 << 16  # most characters of the texts that a stream corrects together
MOST_MORE = 1_000  # terms that are added to a loaded model
loading = RLock()  # so that several threads do not load one model each
_after = loading.release  # a fork waits, as the new process has no thread to free the lock
os.register_at_fork(before=loading.acquire, after_in_parent=_after, after_in_child=_after)


class Corrector:
    """Corrects Chinese spelling; the model is loaded at the first text.

    model: `combined` (the noisy channel and the built-in policy), `channel` (the channel alone),
    `combined:FOLDER` (with another policy of the built-in kind, of a run or a model), or any
    `Proposer`; with torch also `builtin` (the policy alone), a folder or a hub id of a policy, and
    `tagger:MODEL` (one of the BERT family). Packages may add others, see `table`. lm: the
    channel's n-gram model, see `ngrams.find_model`. confidence: least confidence of an edit
    that is made, 0..1; 0: every edit; None: the default of the model. batch: pieces in a forward
    pass. device: of torch; `auto` is the first GPU, or the processor without one.

    protect: names that are not to be changed. terms: words of the user's field, to which a text is
    corrected where it sounds or looks like them; as written they stay. dictionary: right texts by
    the wrong ones that they replace, exactly and before anything else. rescore: a language model
    that judges what the channel and the policy propose, or its name, see `cecdata.lm.open_scorer`.
    script: `simplified`, `traditional` (texts are read in simplified characters by OpenCC, and
    their edits written back), or `auto`, which decides for each text.

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
        protect: Iterable[str] = (),
        terms: Iterable[str | Term] = (),
        dictionary: Mapping[str, str] | None = None,
        lm: str | None = None,
        confidence: float | None = None,
        rescore: str | LanguageModel | None = None,
        script: str = "simplified",
    ) -> None:
        check_script(script)
        is_judge = rescore is None or isinstance(rescore, str) or hasattr(rescore, "log_prob")
        require(is_judge, "rescore", rescore, "the name of a language model, or a LanguageModel")
        self._confidence, self._script = confidence, script
        self._nats = 0.0  # that are added to the log-odds of all edits
        self._words = Wordlists().also(protect, terms, dictionary or {}, self._read)
        self._settings = Settings(confidence, lm, self._words.terms, rescore, batch, device)
        self._model, self._loaded = model, None if isinstance(model, str) else model
        if isinstance(model, str):
            refuse_unsupported(find_model(model)[0], self._settings)
            return
        require(hasattr(model, "propose"), "model", model, "the name of a model, or a Proposer")
        if self._words.terms:
            self._loaded = model.with_terms(self._words.terms)

    def __getstate__(self) -> dict[str, object]:
        """Return what to pickle: the names of the model, not its weights and tables."""
        loaded = None if isinstance(self._model, str) else self._loaded
        return {**vars(self), "_loaded": loaded}

    @property
    def proposer(self) -> Proposer:
        """The model, loaded. Raises InputError where nothing loads."""
        if self._loaded is None:
            with loading:
                if self._loaded is None:  # another thread may have loaded it meanwhile
                    model, argument = find_model(str(self._model))
                    self._loaded = model.load(argument, self._settings)
        return self._loaded

    @property
    def least(self) -> float:
        """The least confidence of an edit that is made."""
        return self.proposer.least if self._confidence is None else self._confidence

    def correct(self, texts: str | Iterable[str]) -> list[Correction]:
        """Return one correction a text, in order; a single text gives a list of one.

        Raises GivenUpError between two texts or steps where nobody waits any more, see
        `cecdata.common.progress`.
        """
        texts = list(_list_texts(texts))
        proposer = self.proposer
        least = self._confidence or 0.0
        prepared = [_Text(text, proposer, self._script, self._words, least) for text in texts]
        asked = [question.text for text in prepared for question in text.questions]
        proposals: list[Sequence[Edit]] = []
        for first in range(0, len(asked), proposer.together):
            stop_if_given_up()
            proposals += proposer.propose(asked[first : first + proposer.together])
        if self._nats:
            proposals = [[move_confidence(e, self._nats) for e in edits] for edits in proposals]
        answers = iter(proposals)  # to all questions of the first text, then of the second, …
        return [text.make_correction(islice(answers, len(text.questions))) for text in prepared]

    def also(
        self,
        *,
        protect: Sequence[str] = (),
        terms: Sequence[str | Term] = (),
        dictionary: Mapping[str, str] | None = None,
        confidence: float | None = None,
    ) -> Corrector:
        """Return a corrector of the same loaded model with more names, terms and replacements.

        terms: at most `MOST_MORE`; a hundred take some hundredths of a second. confidence: not
        below that of this corrector. Raises UsageError as `Corrector` does.
        """
        if not (protect or terms or dictionary or confidence is not None):
            return self
        new_terms = sort_terms(terms)
        if len(new_terms) > MOST_MORE:
            raise UsageError(f"a call may have at most {MOST_MORE:,} terms, not {len(new_terms):,}")
        proposer = self.proposer
        if confidence is not None and not self.least <= confidence <= 1:
            raise UsageError(f"confidence must be from {self.least:g} to 1, not {confidence}")
        words = self._words.also(protect, new_terms, dictionary or {}, self._read)
        if new_terms:
            added = {*words.terms} - {*self._words.terms}
            proposer = proposer.with_terms(sorted(added, key=lambda term: term.text))
        extended = copy(self)
        least = self._confidence if confidence is None else confidence
        vars(extended).update(_words=words, _loaded=proposer, _confidence=least)
        return extended

    def move(self, nats: float, least: float) -> Corrector:
        """Return a corrector of the same loaded model with `nats` added to the log-odds of edits.

        least: the least confidence of an edit after that.
        """
        made = copy(self)
        vars(made).update(_nats=nats, _confidence=least)
        return made

    def _read(self, text: str) -> str:
        """Return a word of the user as a model reads it in a text."""
        plain = edit_guard.Plain.make(text).text
        return plain if self._script == SCRIPTS[0] else simplify(plain)

    def stream(self, texts: Iterable[str]) -> Iterator[Correction]:
        """Yield one correction a text; memory holds as many texts as the model is asked at once."""
        chunk: list[str] = []
        size = 0
        for text in _list_texts(texts):
            chunk.append(text)
            size += len(text)
            if len(chunk) == self.proposer.together or size >= _CHUNK_CHARS:
                yield from self.correct(chunk)
                chunk, size = [], 0
        yield from self.correct(chunk)


def _list_texts(texts: str | Iterable[str]) -> Iterator[str]:
    """Yield the texts, a single one as well. Raises UsageError for what is no text."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, (str, bytes))
    for text in texts if is_list else [texts]:
        if not isinstance(text, str):
            raise UsageError(f"pass a text or a list of texts, not {text!r}")
        yield text


class _Question(NamedTuple):
    """A piece of a text as a model gets it, without white space at its ends."""

    piece: edit_guard.Piece
    begin: int  # where in the text the question begins
    text: str


class _Text:
    """A text, what a model sees of it, and the questions about it.

    The user's dictionary comes first, then the forms of characters: the model reads what they make
    of the text. least: least confidence of an edit that is made.
    """

    def __init__(
        self, source: str, proposer: Proposer, script: str, words: Wordlists, least: float
    ) -> None:
        stop_if_given_up()
        self._least = least
        not_prose = list(find_not_prose(source))
        self._kept = [Kept(p.start, p.end, source[p.start : p.end], p.reason) for p in not_prose]
        plain = self._apply_rules(edit_guard.Plain.make(source, not_prose), words, script)
        self._written = text = plain.text  # in the script of the source
        if script == "traditional" or (script == "auto" and is_traditional(text)):
            text = simplify(text)
            plain = replace(plain, text=text)
        self._plain = plain
        unread = proposer.unread(text)
        self._unread_places = frozenset(at for at, is_unread in enumerate(unread) if is_unread)
        self._kept += self._find_unreadable()
        self._kept += (plain.make_kept(at, at + 1, "form") for at in plain.forms)
        self.questions: list[_Question] = []
        seen = edit_guard.put_stand_ins(text, proposer.unread) if self._unread_places else text
        for piece in edit_guard.cut_pieces(seen, proposer.longest):
            self._add_question(piece, seen, proposer.most)

    def _apply_rules(
        self, plain: edit_guard.Plain, words: Wordlists, script: str
    ) -> edit_guard.Plain:
        """Return what the user's dictionary and the forms of characters make of a text.

        Their edits are noted, and what the user protects in the text after them.
        """
        protected = edit_guard.Protected(plain.text, words.protected)
        by_user = edit_guard.apply_dictionary(plain, words.dictionary, words.wrong, protected)
        self._by_rule = [plain.locate_edit(edit) for edit in by_user]
        # What is deleted leaves a space, so that no other edit goes across its place.
        plain = plain.apply_changes((edit.start, edit.end, edit.target or " ") for edit in by_user)
        if self._least <= forms.CONFIDENCE and script == "simplified":
            protected = edit_guard.Protected(plain.text, words.protected) if by_user else protected
            by_form = forms.standardise_forms(plain, protected)
            self._by_rule += map(plain.locate_edit, by_form)
            self._by_rule.sort(key=lambda edit: edit.start)
            plain = plain.apply_changes((edit.start, edit.end, edit.target) for edit in by_form)
        if self._by_rule:
            protected = edit_guard.Protected(plain.text, words.protected)
        self._protected = protected
        return plain

    def _add_question(self, piece: edit_guard.Piece, seen: str, most: int | None) -> None:
        """Add the question about a piece, or note why the piece stays without one.

        seen: the text as the model sees it. most: the most characters of a question.
        """
        text, unread = self._plain.text, self._unread_places
        han = [at for at in range(piece.start, piece.end) if is_han(ord(text[at]))]
        if unread.issuperset(han):
            return  # no character that could be wrong
        with_context = seen[piece.context : piece.end]
        question = with_context.strip()
        if self._is_unfamiliar(han):
            self._kept.append(self._plain.make_kept(piece.start, piece.end, "unfamiliar"))
        elif most is not None and len(question) > most:
            self._kept.append(self._plain.make_kept(piece.start, piece.end, "too_long"))
        else:
            begin = piece.context + with_context.index(question)
            self.questions.append(_Question(piece, begin, question))

    def make_correction(self, proposals: Iterable[Sequence[Edit]]) -> Correction:
        """Return the correction by the dictionary and the model's proposals for each question."""
        stop_if_given_up()
        plain, edits, kept = self._plain, list[Edit](), [*self._kept]
        for question, proposed in zip(self.questions, proposals, strict=True):
            through, refused = self._filter_proposals(question, proposed)
            edits += through
            kept += refused
        if self._written != plain.text:
            edits, lost = carry_edits(self._written, plain.text, edits)
            kept += (plain.make_kept(start, end, "script") for start, end in lost)
        if self._by_rule:
            kept = [part for whole in kept for part in self._leave_out_replaced(whole)]
        made = [*self._by_rule, *map(plain.locate_edit, edits)]
        made.sort(key=lambda edit: (edit.start, edit.end))
        kept.sort(key=lambda part: (part.start, part.end))
        return Correction(plain.source, apply_edits(plain.source, made), tuple(made), tuple(kept))

    def _filter_proposals(
        self, question: _Question, proposed: Sequence[Edit]
    ) -> tuple[list[Edit], list[Kept]]:
        """Return the edits of a question's piece that are made, and what is kept for the others."""
        piece, begin, _ = question
        shifted = [replace(e, start=e.start + begin, end=e.end + begin) for e in proposed]
        # What is inserted between two pieces belongs to the second.
        last = piece.end + (piece.end == len(self._plain.text))
        inside = [e for e in shifted if piece.start <= e.start < last and e.end <= piece.end]
        sure = [edit for edit in inside if edit.confidence >= self._least]
        return edit_guard.filter_edits(
            self._plain, piece, sure, self._unread_places, self._protected
        )

    def _leave_out_replaced(self, kept: Kept) -> Iterator[Kept]:
        """Yield the parts of what was kept that no rule has replaced."""
        start = kept.start
        first = bisect_left(self._by_rule, start, key=lambda edit: edit.start)
        last = bisect_left(self._by_rule, kept.end, key=lambda edit: edit.start)
        for edit in self._by_rule[first:last]:
            if start < edit.start:
                source = self._plain.source[start : edit.start]
                yield Kept(start, edit.start, source, kept.reason)
            start = edit.end
        if start < kept.end or kept.start == kept.end:
            yield Kept(start, kept.end, self._plain.source[start : kept.end], kept.reason)

    def _is_unfamiliar(self, han: Sequence[int]) -> bool:
        """Return whether too many Han characters are unreadable, as in traditional Chinese."""
        unreadable = len(self._unread_places.intersection(han))
        if unreadable < UNFAMILIAR * len(han):
            return False
        other_forms = sum(not is_standard(self._plain.text[at]) for at in han)
        return unreadable > _FEW or other_forms > 1

    def _find_unreadable(self) -> Iterator[Kept]:
        """Yield the runs that the model cannot read, but for what the dictionary put in."""
        unreadable = self._unread_places - self._plain.fixed
        for is_unreadable, run in groupby(range(len(self._plain.text)), unreadable.__contains__):
            places = [*run]
            start, end = places[0], places[-1] + 1
            if is_unreadable and not self._plain.text[start:end].isspace():
                yield self._plain.make_kept(start, end, "unreadable")
