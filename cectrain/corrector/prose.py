"""What in a text is no prose: addresses and code, which a corrector never changes.

The places are those that a plain line shows; no format is parsed, but a reader of documents puts
the object replacement character (U+FFFC) where one has code, a formula or an image. All patterns
take time that is linear in the text: an alternative that may fail late begins only where its first
sign stands, and ends at the next such sign.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from cecdata.hanzi.characters import HAN_RANGES

#: the Han characters, within brackets of a pattern
HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_RANGES)
_MARKS = "，。；：！？、（）《》〈〉【】〔〕「」『』“”‘’…—·￥"
#: What ends names of files and of sites: `name.ext` is no prose with these alone, since people also
#: write a full stop of ASCII between two sentences.
_FILES = (
    "7z aac ai apk asc ass avi avif bak bash bat bib bin bmp bz2 c cc cfg cfm class cmd conf "
    "cpp cs css csv dat db deb dll dmg doc docm docx dot ebook eml env eps epub exe flac flv "
    "gif git go gz h hpp htm html icns ico ini ipa ipynb iso jar java jpeg jpg js json jsonl "
    "jsp jsx key kt less lock log lrc lua m m4a m4v mkv md mdx mobi mov mp3 mp4 mpeg mpg msi "
    "numbers odp ods odt ofd ogg otf pages parquet pdf php pl png po pot ppt pptx proto ps1 psd "
    "pt py pyc r rar rb rm rmvb rs rst rtf scss sh so sql srt ssa svelte svg swf swift tar tex "
    "tif tiff toml torrent ts tsv tsx ttf txt vb vue wav webm webp whl wma wmv woff wps xls "
    "xlsm xlsx xml xsl xz yaml yml zip zst "
)
_SITES = "ai app biz cc cn co com dev edu gov hk info io me mil net org site tech top tv tw vip xyz"
_SUFFIX = rf"\.(?i:{'|'.join([*_FILES.split(), *_SITES.split()])})(?![A-Za-z0-9_])"
_NAME = r"[\w./\\+%~@-]"  # of the run that ends in `name.ext`
_IN_PATH = rf"[^\s:*?\"'`<>|{_MARKS}]"
_IN_ADDRESS = rf"[^\s<>\"'`|\\^*,;!()\[\]{{}}{_MARKS}]"
_ROOTS = (
    "Applications|Users|Volumes|bin|data|dev|etc|home|lib|mnt|opt|proc|root|srv|sys|tmp|usr|var"
)
_LATEX = (
    "(?:auto|eq|page|c|C|v|hyper|name)?ref|begin|bibitem|bibliography|bibliographystyle|cite[a-z]*|"
    "documentclass|end|graphicspath|href|include|includegraphics|input|label|url|usepackage"
)

_ASCII_SITE = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}(?::\d+)?"
_HAN_SITE = r"[\w-]+(?:\.[\w-]+)*\.(?:中国|公司|网络|网址)"

_NOT_PROSE = re.compile(
    rf"""
    (?P<code>
      \ufffc
    | (?m:^)[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?P<fence>`{{3,}}|~{{3,}})[^`\n]*\n(?s:.*?)
          (?:(?<=\n)[ \t>]*(?P=fence)[`~]*[ \t]*(?m:$)|\Z)
    | (?<!`)(?P<ticks>`{{1,3}})(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)
    | <(?i:(?P<element>code|kbd|pre|script|style))\b[^<>]*>[^<]*</(?P=element)\s*>
    | </?[A-Za-z][A-Za-z0-9:._-]*(?:[\s/](?:"[^"<>]*"|'[^'<>]*'|[^<>"'{HAN}{_MARKS}])*)?>
    | \{{\{{(?:[^{{}}]|\{{\{{[^{{}}]*\}}\}}|\{{[^{{}}]*\}})*\}}\}}
    | <%[^%]*%> | \{{%[^%\n]*%\}} | \{{\\[^{{}}\n]*\}}
    | [$\#%]\{{[^{{}}\n]*\}}
    | (?<![A-Za-z*\]}}])\{{[\w.:!\[\]-]{{1,64}}\}}
    | (?:\\u[0-9a-fA-F]{{4}})+
    | %\([^()\n]*\)[-\#0\x20+]*\d*(?:\.\d+)?[A-Za-z]
    | \\(?:{_LATEX})\*?(?:\[[^\[\]\n]*\])*\{{[^{{}}\n]*\}}
    | \\verb\*?(?P<verb>[^\s\w])[^\n]*?(?P=verb)
    | \$\$[^$]+\$\$
    | \$(?![\s$])[^$\n\\_^=]*[\\_^=][^$\n]*\$
    | (?<![\w-])--[\w-]+=[^\s{_MARKS}]+
    )
    | (?P<address>
      \]\((?:[^()\n"，。；！？]|\([^()\n]*\))*(?=[)"])
    | \]\[[^\[\]\n]*\](?!\[)
    | (?m:^)[ \t>]*\[[^\[\]\n]+\]:[ \t]+\S+
    | \[\[[^\[\]|\n]*(?:\||\]\])
    | (?P<link>
          (?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{1,20}}://|(?<![A-Za-z0-9.-])(?:www\.|mailto:))
          (?:{_ASCII_SITE}(?=[{HAN}])
          |(?:{_IN_ADDRESS}|\({_IN_ADDRESS}*\)|[,;!](?=[!-~]))+))
    | (?<![\w.%+-])(?P<mail>[\w.%+-]+)@
          (?:{_ASCII_SITE}(?!\.)|{_HAN_SITE}|[\w-]+(?:\.[\w-]+)+)
    | (?P<path>
          (?:(?<![A-Za-z0-9])[A-Za-z]:[\\/]|\\\\(?=[\w.-]+\\)|(?<![\w~])~/|(?<![.\w/])\.{{1,2}}[\\/]
          |(?<=[{HAN}])\.{{1,2}}/|(?<![\w./<])/(?=[^\s/{_MARKS}]+/[^\s/])|(?<=[{HAN}])/(?=(?:{_ROOTS})/))
          (?:(?!(?<=[{HAN}])/(?:{_ROOTS})/){_IN_PATH}|[ ](?=[\w.()-]+\\))*)
    | (?<!{_NAME})(?P<files>(?:{_NAME}|\(\d+\))*(?:\w|\(\d+\)){_SUFFIX})(?:/{_IN_ADDRESS}*)?
    | (?<!{_NAME}){_HAN_SITE}/{_IN_ADDRESS}*
    )
    """,
    re.VERBOSE,
)
_IN_MAIL = f"{string.ascii_letters}{string.digits}_.%+-"
_SIGNS = re.compile(r"[`<{$%\\\[\]@:/~.=\ufffc]")  # each place that is no prose has one of these
_FILE = re.compile(rf".*?(?:{_SUFFIX})+")
# The prose before a name of ASCII, before the beginning of a path, and before a name of at most 40
# characters after a word that introduces one: 请看README.md, 运行./按装.sh, 请看我门.docx.
_INTRODUCES = "请看|参见|详见|打开|下载|上传|查看|运行|执行|编辑|删除|名为|叫做|附件|在|把"
_GLUED = re.compile(
    rf"[^/\\@]*[{HAN}](?=[A-Za-z0-9]{{3,}}(?:[._%+-][A-Za-z0-9]+)*\Z|\.{{1,2}}/|~/|/(?:{_ROOTS})/|www\.)"
    rf"|[^/\\@]*(?:{_INTRODUCES})(?=[^./\\@]{{1,40}}{_SUFFIX}\Z)"
    rf"|[^/\\@]*[到为成是用](?=\w*{_SUFFIX}\Z)"
)
# The last name of a path as far as it is ASCII; prose follows without a space.
_LAST_NAME = re.compile(rf"[!-@\[-`{{-~]*[A-Za-z][!-~]*(?<=[A-Za-z0-9])(?=[{HAN}])(?!.*{_SUFFIX})")


class NotProse(NamedTuple):
    """The place `text[start:end]` of an address or of code; reason is `address` or `code`."""

    start: int
    end: int
    reason: str


def find_not_prose(text: str) -> Iterator[NotProse]:
    """Yield the places of a text that are no prose, from left to right.

    >>> text = "我门在[文当](docs/己经.md)里运行 `按装.sh`，见www.我门.com。"
    >>> [text[place.start : place.end] for place in find_not_prose(text)]
    ['](docs/己经.md', '`按装.sh`', 'www.我门.com']
    """
    if not _SIGNS.search(text):
        return
    for match in _NOT_PROSE.finditer(text):
        start, end, reason = match.start(), match.end(), str(match.lastgroup)
        if match["files"]:  # one name behind the other, each with prose before it
            ends = [start + file.end() for file in _FILE.finditer(match["files"])]
            for name_end in [*ends[:-1], end]:
                prose = _GLUED.match(text[start:name_end])
                yield NotProse(start + prose.end() if prose else start, name_end, reason)
                start = name_end
        elif match["mail"]:  # with prose before it
            before = match["mail"].rstrip(_IN_MAIL)
            yield NotProse(start + (len(before) if before != match["mail"] else 0), end, reason)
        elif match["path"] or match["link"]:  # with prose behind it
            last_slash = max(text.rfind("/", start, end), text.rfind("\\", start, end))
            name = _LAST_NAME.match(text, max(last_slash + 1, start), end)
            yield NotProse(start, name.end() if name else end, reason)
        else:
            yield NotProse(start, end, reason)
