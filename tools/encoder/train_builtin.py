"""Train the built-in encoder on a teacher's cosines: torch, about three minutes on one core.

    python tools/encoder/pairs.py CLEAN.parquet PAIRS_DIR [--teacher NAME_OR_PATH]
    python tools/encoder/train_builtin.py PAIRS_DIR … [--out cecdata/embed/weights]
    python tools/encoder/judge.py CLEAN.parquet PAIRS_DIR FRESH_DIR

The student sums one vector for each character and each pair of neighbours of a text. The cosine of
two sums and a few facts about them, part by part, go through a small network that predicts the
teacher's cosine. The pairs are those of PAIRS_DIR and, for each target, nearly as many pairs of two
of its sources. The loss is the squared error of that prediction (errors near 1 weigh more), of the
bare cosine, and of the cosines among a batch's targets.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from cecdata.embed import kernels

OUT = Path(__file__).resolve().parents[2] / "cecdata" / "embed" / "builtin"
BATCH, WARM_UP = 256, 200
RATE, RATE_NETWORK = 4e-3, 3e-3
KNOWN = kernels.CHARACTERS - kernels.SHARED
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints, npt.NDArray[np.float32]]  # rows of both texts, the teacher's cosine


class Bags:
    """Texts as bags of rows, the same rows that the kernel sums."""

    def __init__(self, texts: list[str], characters: list[int]) -> None:
        table = KNOWN + np.arange(0x110000) % kernels.SHARED
        table[characters] = np.arange(len(characters))
        rows, sizes = [], []
        for text in texts:
            points = np.array([ord(c) for c in text], np.uint64)
            left = np.concatenate([[np.uint64(kernels.START)], points])
            right = np.concatenate([points, [np.uint64(kernels.END)]])
            rows.append(np.concatenate([table[points.astype(np.int64)], _pair_rows(left, right)]))
            sizes.append(len(text))
        self.lengths = torch.tensor(sizes, dtype=torch.float32)
        self._flat = np.concatenate(rows)
        self._bounds = np.concatenate([[0], np.cumsum([len(r) for r in rows])])

    def take(self, which: Ints) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows and offsets as EmbeddingBag takes them."""
        sizes = self._bounds[which + 1] - self._bounds[which]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        at = np.repeat(self._bounds[which] - starts, sizes) + np.arange(sizes.sum())
        return torch.from_numpy(self._flat[at]), torch.from_numpy(starts)


def _pair_rows(left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]) -> Ints:
    h = left * np.uint64(0x9E3779B97F4A7C15)
    h ^= right * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    row = (h >> np.uint64(40)) & np.uint64(kernels.PAIRS - 1)
    return kernels.CHARACTERS + row.astype(np.int64)


class Student(torch.nn.Module):
    """The encoder and its calibration; `kernels._score` computes the same from integers."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(
            kernels.CHARACTERS + kernels.PAIRS, kernels.WIDTH, mode="sum", sparse=True
        )
        with torch.no_grad():
            self.rows.weight.normal_(0, 0.1)
            self.rows.weight[kernels.CHARACTERS :] *= 0.5
            self.rows.weight[:, kernels.SPAN :] = 0
        one, two = kernels.HIDDEN
        self.first = torch.nn.Linear(kernels.FEATURES, one)
        self.second = torch.nn.Linear(one, two)
        self.third = torch.nn.Linear(two, 1)

    def forward(
        self, target: torch.Tensor, source: torch.Tensor, n: torch.Tensor, m: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the bare and the predicted cosine of sums [B, WIDTH] and lengths [B]."""
        t, s = target[:, : kernels.SPAN], source[:, : kernels.SPAN]
        tt, ts, ss = (_by_head(a * b) for a, b in ((t, t), (t, s), (s, s)))
        size_t, size_s = (torch.sqrt(v.sum(1) + 1e-6) for v in (tt, ss))
        cosine = ts.sum(1) / (size_t * size_s)
        mine = target[:, kernels.SPAN :] / n[:, None]
        facts = torch.stack(
            [
                cosine,
                torch.sqrt(torch.clamp(1 - cosine, min=1e-6)),
                n / (n + 16),
                m / (m + 16),
                size_t / n,
                size_s / (size_t + size_s),
                torch.abs(m - n) / (m + n),
            ],
            1,
        )
        heads = ts / (torch.sqrt(tt + 1e-6) * torch.sqrt(ss + 1e-6))
        apart = (tt + ss - 2 * ts) / (tt + ss).sum(1, keepdim=True)
        change = source[:, kernels.SPAN :] / m[:, None] - mine
        features = torch.cat([facts, heads, apart, mine, change], 1)
        hidden = torch.relu(self.second(torch.relu(self.first(features))))
        return cosine, cosine + self.third(hidden)[:, 0]


def _by_head(products: torch.Tensor) -> torch.Tensor:
    """Return the sums [B, HEADS] of products [B, SPAN] within each head."""
    return products.reshape(len(products), kernels.HEADS, kernels.PART).sum(2)


def load(folders: list[Path]) -> tuple[Pairs, list[str], npt.NDArray[np.float16]]:
    """Return the pairs that are not held out, and the texts and teacher vectors of all folders."""
    pairs, texts, vectors = [], [], []
    for folder in folders:
        start = len(texts)
        found = pl.read_parquet(folder / "pairs.parquet", glob=False).filter(~pl.col("held_out"))
        pairs.append(found.select(pl.col("t", "s") + start, "cosine"))
        texts += pl.read_parquet(folder / "texts.parquet", glob=False)["text"].to_list()
        vectors.append(np.load(folder / "vectors.npy"))
    whole = pl.concat(pairs)
    columns = (whole[name].to_numpy() for name in ("t", "s", "cosine"))
    return tuple(columns), texts, np.concatenate(vectors)


def with_siblings(
    given: Pairs, vectors: npt.NDArray[np.float16], rng: np.random.Generator
) -> Pairs:
    """Return the pairs and nearly as many more, each of two sources of one target.

    The teacher's vectors of these texts are known, so the cosines cost nothing.
    """
    target, source, _ = given
    order = np.lexsort((rng.random(len(target)), target))
    left, right = order[:-1], order[1:]
    same = (target[left] == target[right]) & (source[left] != source[right])
    one, other = source[left[same]], source[right[same]]
    cosine = np.empty(len(one), np.float32)
    for at in range(0, len(one), 8192):
        a, b = (vectors[rows[at : at + 8192]].astype(np.float32) for rows in (one, other))
        cosine[at : at + 8192] = np.einsum("pd,pd->p", a, b)
    more = (one, other, cosine)
    return tuple(np.concatenate(both) for both in zip(given, more, strict=True))


def train(folders: list[Path], epochs: int, seed: int) -> tuple[Student, list[int]]:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    given, texts, vectors = load(folders)
    seen: Counter[int] = Counter()
    for text in (texts[row] for row in np.unique(given[0])):
        seen.update(map(ord, text))
    ranked = sorted(seen, key=lambda point: (-seen[point], point))
    characters = sorted(ranked[:KNOWN])
    bags, student = Bags(texts, characters), Student()
    network = [p for name, p in student.named_parameters() if not name.startswith("rows")]
    optimisers = [
        torch.optim.SparseAdam(list(student.rows.parameters())), torch.optim.Adam(network)
    ]  # fmt: skip
    rng, steps, step = np.random.default_rng(seed), epochs * (2 * len(given[0]) // BATCH), 0
    for epoch in range(epochs):
        target, source, teacher = with_siblings(given, vectors, rng)
        order, total = rng.permutation(len(target)), 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            now = min(1.0, (step + 1) / WARM_UP) * max(0.02, 1 - step / steps)
            for optimiser, rate in zip(optimisers, (RATE, RATE_NETWORK), strict=True):
                optimiser.param_groups[0]["lr"] = rate * now
            rows = order[start : start + BATCH]
            t, s = target[rows], source[rows]
            sums = student.rows(*bags.take(t))
            bare, found = student(
                sums, student.rows(*bags.take(s)), bags.lengths[t], bags.lengths[s]
            )
            wanted = torch.from_numpy(teacher[rows])
            # near 1 the cosines lie close together, so small errors matter
            weight = 1 / (1.1 - wanted)
            loss = (weight * (found - wanted) ** 2).mean() + 0.3 * ((bare - wanted) ** 2).mean()
            unit = torch.nn.functional.normalize(sums[:, : kernels.SPAN], dim=1)
            known = torch.from_numpy(vectors[t].astype(np.float32))
            loss = loss + 0.5 * ((unit @ unit.T - known @ known.T) ** 2).mean()
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
            total, step = total + loss.item(), step + 1
        print(f"epoch {epoch + 1} of {epochs}: loss {total * BATCH / len(order):.5f}", flush=True)
    return student, characters


def save(student: Student, characters: list[int], out: Path) -> None:
    """Write the rows in fp16 on the kernel's grid (multiples of 1/STEP), the network in float64."""
    rows = student.rows.weight.detach().numpy().astype(np.float64)
    known = np.rint(rows.astype(np.float16).astype(np.float64) * kernels.STEP) / kernels.STEP
    assert np.abs(known).max() < 2**15 / kernels.STEP
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "rows.npy", known.astype(np.float16), allow_pickle=False)
    np.save(out / "characters.npy", np.array(characters, np.uint32), allow_pickle=False)
    parts = {}
    for name in ("first", "second", "third"):
        layer = getattr(student, name)
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        parts[name] = np.concatenate([weight.T, bias[None]]).astype(np.float64)
    np.savez(out / "network.npz", allow_pickle=False, **parts)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pairs", type=Path, nargs="+")
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    save(*train(given.pairs, given.epochs, given.seed), given.out)


if __name__ == "__main__":
    main()
