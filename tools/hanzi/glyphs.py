"""The similarity of two printed characters: correlation of blurred bitmaps in two typefaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Floats = NDArray[np.float32]
EM = 64  # pixels of the square a glyph is drawn in, before it is halved
GRID = 32
BLUR = 2.0  # pixels of the EM square
MARGIN = 4  # pixels left free around a glyph that is stretched to fill the square
NARROWEST = 0.6  # of the longer side: 一 and 卜 are not stretched into blocks
CHUNK = 1024
# Shifts by at most one cell: parts move a little when a neighbour changes. The opposite shifts
# follow by symmetry.
SHIFTS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, -1))


def similarity(characters: list[str], fonts: tuple[str, ...]) -> Floats:
    """Return a symmetric matrix of similarities, 0 (unrelated) to 1 (the same picture).

    They are means over the typefaces, and over the glyph as printed and as stretched to fill its
    square: 日 and 曰 differ in width alone.
    """
    total = np.zeros((len(characters), len(characters)), np.float32)
    for font in fonts:
        for stretched in (False, True):
            total += _correlation(_bitmaps(characters, font, stretched))
    return np.clip(total / (2 * len(fonts)), 0.0, 1.0)


def _bitmaps(characters: list[str], font: str, stretched: bool) -> Floats:
    """Return the ink, 0 to 1 [characters, GRID, GRID]."""
    path, _, index = font.partition("#")
    face = ImageFont.truetype(path, EM - 4, index=int(index or 0))
    bitmaps = np.empty((len(characters), GRID, GRID), np.float32)
    for row, character in enumerate(characters):
        image = Image.new("L", (EM, EM), 0)
        ImageDraw.Draw(image).text((EM // 2, EM // 2), character, 255, font=face, anchor="mm")
        if stretched:
            image = _stretch(image)
        image = image.filter(ImageFilter.GaussianBlur(BLUR))
        cells = np.asarray(image, np.float32).reshape(GRID, EM // GRID, GRID, EM // GRID)
        bitmaps[row] = cells.mean((1, 3)) / 255
    if not bitmaps.any((1, 2)).all():
        raise SystemExit(f"{font}: the font has no glyph for some characters; use another --font")
    return bitmaps


def _stretch(image: Image.Image) -> Image.Image:
    box = image.getbbox()
    if box is None:
        return image
    left, top, right, bottom = box
    longest = max(right - left, bottom - top)
    width, height = (max(side, NARROWEST * longest) for side in (right - left, bottom - top))
    across, down = width / (EM - 2 * MARGIN), height / (EM - 2 * MARGIN)
    shift_right = (left + right) / 2 - across * EM / 2
    shift_down = (top + bottom) / 2 - down * EM / 2
    return image.transform(
        (EM, EM),
        Image.Transform.AFFINE,
        (across, 0, shift_right, 0, down, shift_down),
        Image.Resampling.BILINEAR,
    )


def _correlation(bitmaps: Floats) -> Floats:
    """Return the best correlation over the shifts, after the mean bitmap is subtracted."""
    count = len(bitmaps)
    plain = _unit(bitmaps - bitmaps.mean(0))
    best = np.full((count, count), -1.0, np.float32)
    for down, right in SHIFTS:
        shifted = np.roll(bitmaps, (down, right), (1, 2))
        moved = _unit(shifted - bitmaps.mean(0))
        for start in range(0, count, CHUNK):
            rows = slice(start, start + CHUNK)
            np.maximum(best[rows], plain[rows] @ moved.T, out=best[rows])
    return np.maximum(best, best.T)


def _unit(bitmaps: Floats) -> Floats:
    flat = bitmaps.reshape(len(bitmaps), -1)
    unit: Floats = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return unit
