"""The main text of a web page, by trafilatura (the extra `web`)."""

from __future__ import annotations

from cecdata.common.errors import MissingPackageError, how_to_install


def page_text(page: bytes | str) -> list[str]:
    """Return the paragraphs of a page's main text, if it has one.

    Menus, footers and scripts are left out. Raises MissingPackageError without trafilatura.
    """
    try:
        import trafilatura
    except ImportError as error:
        raise MissingPackageError(f"web pages need trafilatura: {how_to_install('web')}") from error
    text = trafilatura.extract(page, favor_recall=True, include_comments=False) or ""
    return [line.strip() for line in text.split("\n") if line.strip()]
