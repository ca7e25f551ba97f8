"""Text files as people write them: their characters, or why there are none and what to do."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from cecdata.common.errors import InputError

# What decompresses the files that begin so.
_COMPRESSED = {
    "gzip -dc": re.compile(rb"\x1f\x8b"),
    "zstd -dc": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bzip2 -dc": re.compile(rb"BZh[1-9]1AY&SY"),
    "xz -dc": re.compile(rb"\xfd7zXZ\0"),
    "unzip -p": re.compile(rb"PK\x03\x04"),
}
HEAD = 10  # bytes that show it
SEP = re.compile('"?sep=(.)"?')  # what Excel writes before the header of a table


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark, as Excel writes it.

    A carriage return ends a line, and becomes a line feed, where the file has no line feed. Raises
    InputError where it is in neither encoding.
    """
    try:
        data = path.read_bytes()
        text = data.decode(guess_encoding(data))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} {explain_unreadable(error)}") from error
    return text if "\n" in text else text.replace("\r", "\n")


def read_text_lines(path: Path) -> list[str]:
    """Return the lines of a file as `read_text` reads it; only an editor's line ends count."""
    return re.split("\r\n?|\n", read_text(path))


def guess_encoding(head: bytes) -> str:
    """Return the encoding in which a file that begins so is read."""
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if marked else "utf-8-sig"


def split_at_folder(pattern: str) -> tuple[Path, str]:
    """Return the longest folder that a pattern begins with, letter by letter, and the rest."""
    parts = Path(pattern).parts
    for end in range(len(parts) - 1, 0, -1):
        if (folder := Path(*parts[:end])).is_dir():
            return folder, str(Path(*parts[end:]))
    return Path(), pattern


def advise_decompression(head: bytes) -> str:
    """Return what follows the name of a file that begins so, or "" where it is not compressed."""
    for command, pattern in _COMPRESSED.items():
        if pattern.match(head):
            more = ", or save a document, such as a Word file, as text" * (command == "unzip -p")
            return f"is compressed: decompress it first, with `{command} FILE > NEW`{more}"
    return ""


def explain_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return what follows a file's name in the message about it."""
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    if error.encoding.startswith("utf-16"):
        return f"is damaged UTF-16 ({error.reason} at byte {error.start}): write it again"
    return advise_decompression(error.object) or (
        f"is not UTF-8 ({error.reason} at byte {error.start}): convert a text, for example "
        "with `iconv -f gb18030 -t utf-8`, and save a document or a table as text"
    )


def join_tokens(tokens: list[str]) -> str:
    """Return the text of tokens, with a space between two words of several ASCII letters."""
    text = ""
    before = ""
    for token in tokens:
        are_latin = all(sign.isascii() and sign.isalnum() for sign in (before[-1:], token[:1]))
        if are_latin and max(len(before), len(token)) > 1:
            text += " "
        text += token
        before = token
    return text


def escape_controls(text: str) -> str:
    r"""Return a text in one line that no terminal and no runner of workflows obeys.

    Control and format characters, as signs that turn the direction of writing, and bytes that are
    not UTF-8 are escaped, and so is what begins a command of GitHub's workflows.

    >>> print(escape_controls("::error::\x1b]0;title\x07坏\n"), escape_controls("\u202egnp.md"))
    \x3a:error::\x1b]0;title\x07坏\n \u202egnp.md
    """
    line = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )
    line = re.sub(r"^(\s*):(?=:)", r"\1\\x3a", line)
    return line.replace("##[", "#\\x23[")
