"""Corrections of Word files are tracked changes, and all parts without them stay."""

import io
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from lxml import etree
from proposers import Corrects

from cecdata.common.errors import InputError
from cectrain.cli import cli
from cectrain.corrector.corrector import Corrector
from cectrain.documents.document import correct_document, list_edits
from cectrain.documents.table import Reading, read_document

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = (
    f'xmlns:w="{W}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
#: 按装 stands where it is to be corrected; 己经 is deleted, inserted by others, or of a field
BODY = """\
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>请按装这个程序</w:t></w:r></w:p>
<w:p><w:bookmarkStart w:id="7" w:name="己经"/>
<w:r w:rsidR="00AA"><w:t xml:space="preserve">我们来 按</w:t></w:r>
<w:r><w:rPr><w:b/></w:rPr><w:t>装</w:t><w:tab/><w:t>他请你按</w:t><w:br/></w:r>
<w:hyperlink r:id="rId9"><w:r><w:t>装这台机器</w:t></w:r></w:hyperlink><w:bookmarkEnd w:id="7"/>
<w:ins w:id="3" w:author="某" w:date="2020-01-01T00:00:00Z"><w:r><w:t>他己经来了</w:t></w:r></w:ins>
<w:del w:id="4" w:author="某" w:date="2020-01-01T00:00:00Z">
<w:r><w:delText>己经</w:delText></w:r></w:del>
<w:r><w:footnoteReference w:id="2"/></w:r></w:p>
<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF 己经</w:instrText></w:r>
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>己经</w:t></w:r>
<w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>在这里按装程序。</w:t></w:r></w:p>
<w:tbl><w:tblPr/><w:tblGrid><w:gridCol w:w="4000"/></w:tblGrid><w:tr><w:tc><w:tcPr/>
<w:p><w:r><w:t>表里按装</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t>外面按装</w:t><mc:AlternateContent><mc:Fallback><w:pict><v:shape><v:textbox>
<w:txbxContent><w:p><w:r><w:t>框里按装</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict>
</mc:Fallback></mc:AlternateContent></w:r></w:p>
<w:sectPr><w:headerReference w:type="default" r:id="rId1"/></w:sectPr>
"""
TYPES = """<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>\
<Default Extension="xml" ContentType="application/xml"/>\
<Default Extension="png" ContentType="image/png"/>{}</Types>"""
OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
KINDS = {"document": "document.main", "header1": "header", "footnotes": "footnotes"}
KINDS["comments7"] = "comments"


def relations(*rows):
    lines = "".join(
        f'<Relationship Id="{i}" Type="{RELATED}/{kind}" Target="{target}"{more}/>'
        for i, kind, target, more in rows
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'{HEAD}<Relationships xmlns="{space}">{lines}</Relationships>'


def word_file(body=BODY, **more):
    """Return the bytes of a Word file with a header, a footnote, a picture and odd parts."""
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{OFFICE}.{kind}+xml"/>'
        for name, kind in KINDS.items()
        if name != "comments7" or f"word/{name}.xml" in more
    )
    note = '<w:footnote w:id="{}"{}><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:footnote>'
    notes = note.format(0, ' w:type="separator"', "") + note.format(2, "", "注里按装程序")
    parts = {
        "[Content_Types].xml": HEAD + TYPES.format(overrides),
        "_rels/.rels": relations(("rId1", "officeDocument", "word/document.xml", "")),
        "word/_rels/document.xml.rels": relations(
            ("rId1", "header", "header1.xml", ""),
            ("rId2", "footnotes", "footnotes.xml", ""),
            ("rId9", "hyperlink", "http://己经.com/", ' TargetMode="External"'),
        ),
        "word/document.xml": f"{HEAD}<w:document {NAMES}><w:body>{body}</w:body></w:document>",
        "word/header1.xml": f"<w:hdr {NAMES}><w:p><w:r><w:t>眉上按装</w:t></w:r></w:p></w:hdr>",
        "word/footnotes.xml": f"{HEAD}<w:footnotes {NAMES}>{notes}</w:footnotes>",
        "word/media/a.png": bytes(range(256)),
        "docProps/己经.xml": "<a>己经</a>",
        **more,
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return made.getvalue()


def correct(data, corrector=None, *, comments=False):
    """Return a corrected file, and its edits."""
    reading = Reading(date="2026-01-02T03:04:05Z", comments=comments)
    document = read_document("a.docx", data, reading)
    edits = list_edits(correct_document(corrector or Corrector(Corrects()), document))
    return document.write(edits), edits


def parts_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def settle(part, *, accept):
    """Return the characters of a part, each with its run, changes accepted or rejected."""
    signs = []
    for run in etree.fromstring(part).iter(f"{{{W}}}r"):
        change = run.getparent()
        if change.get(f"{{{W}}}author") == "CEC-Zero":
            if accept != (change.tag == f"{{{W}}}ins"):
                continue
            change = change.getparent()
        if run.find(f"{{{W}}}commentReference") is not None:
            continue
        shape = [etree.tostring(child) for child in run.iterchildren(f"{{{W}}}rPr")]
        path = tuple(element.tag for element in (change, *change.iterancestors()))
        for child in run:
            if child.tag in {f"{{{W}}}t", f"{{{W}}}delText"}:
                signs += [
                    (sign, *shape, path, run.get(f"{{{W}}}rsidR")) for sign in child.text or ""
                ]
            elif child.tag != f"{{{W}}}rPr":
                signs.append((child.tag, *shape, path))
    return signs


def test_all_changes_accepted_are_the_correction_and_rejected_the_source():
    """In paragraphs, tables, links, notes, headers and text boxes; properties of runs stay."""
    data = word_file()
    made, edits = correct(data)
    before, after = parts_of(data), parts_of(made)
    assert [*before] == [*after]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"word/document.xml", "word/header1.xml", "word/footnotes.xml"}
    for name in changed:
        source = settle(before[name], accept=False)
        right = settle(before[name].replace("按".encode(), "安".encode()), accept=True)
        assert settle(after[name], accept=False) == source
        assert settle(after[name], accept=True) == right
    assert len(edits) == sum(part.decode("utf-8", "ignore").count("按") for part in before.values())


@pytest.mark.slow
def test_of_two_hundred_files_only_the_prose_changes():
    """Paragraphs, links, fields, notes, tables and text boxes, in any order and number."""
    blocks = re.findall(r"<w:(?:p|tbl)>.*?</w:(?:p|tbl)>\n(?=<w:[pts])", BODY, re.DOTALL)
    assert "".join(blocks) == BODY.partition("<w:sectPr>")[0]
    random = Random(60)
    for _ in range(200):
        data = word_file("".join(random.choices(blocks, k=random.randrange(1, 30))))
        made, edits = correct(data, comments=random.random() < 0.5)
        before, after = parts_of(data), parts_of(made)
        text = b"".join(before.values()).decode("utf-8", "ignore")
        assert len(edits) == text.count("按")
        for name in before:
            if not name.startswith(("word/document", "word/header", "word/footnotes")):
                assert before[name] == after[name] or name in {
                    "[Content_Types].xml",
                    "word/_rels/document.xml.rels",
                }
                continue
            right = settle(before[name].replace("按".encode(), "安".encode()), accept=True)
            assert settle(after[name], accept=False) == settle(before[name], accept=False)
            assert settle(after[name], accept=True) == right


def test_a_change_has_its_author_its_date_and_a_number_of_its_own():
    """The same date gives the same bytes; without an edit, the file stays as it is."""
    made, _ = correct(word_file())
    text = b"".join(parts_of(made).values()).decode("utf-8", "ignore")
    marks = re.findall(r'<w:(?:ins|del) w:id="(\d+)" w:author="CEC-Zero" w:date="([^"]*)"', text)
    assert {date for _, date in marks} == {"2026-01-02T03:04:05Z"}
    assert len({number for number, _ in marks} | {"3", "4", "7"}) == len(marks) + 3
    assert correct(word_file())[0] == made
    assert read_document("a.docx", made, Reading()).write([]) == made


COMMENT = '<w:comment w:id="{}" w:author="某"><w:p><w:r><w:t>己经</w:t></w:r></w:p></w:comment>'
#: comments of others, in a part of another name; no place in the text refers to them
COMMENTED = {
    "word/comments7.xml": f"<w:comments {NAMES}>{COMMENT.format(5)}{COMMENT.format(90)}"
    "</w:comments>",
    "word/_rels/document.xml.rels": relations(("rId3", "comments", "/word/comments7.xml", "")),
}


@pytest.mark.parametrize("more", [{}, COMMENTED])
def test_a_comment_says_why(more):
    """Beside each change outside of headers, notes and text boxes; comments of others stay."""
    data = word_file(**more)
    made, edits = correct(data, comments=True)
    before, after = parts_of(data), parts_of(made)
    name = "word/comments7.xml" if more else "word/comments.xml"
    written = {"word/document.xml", "word/header1.xml", "word/footnotes.xml", name}
    if not more:
        written |= {"[Content_Types].xml", "word/_rels/document.xml.rels"}
    assert {part for part in after if before.get(part) != after[part]} == written
    comments = [*etree.fromstring(after[name])]
    if more:
        assert [etree.tostring(comment) for comment in comments[:2]] == [
            etree.tostring(comment) for comment in etree.fromstring(before[name])
        ]
        del comments[:2]
    numbers = [comment.get(f"{{{W}}}id") for comment in comments]
    assert len({*numbers} | {"5", "90"}) == 8
    reasons = {"".join(comment.itertext()) for comment in comments}
    assert reasons == {edit.message for edit in edits}
    text = etree.fromstring(after["word/document.xml"])
    for number in numbers:
        start, end, anchor = (
            text.find(f".//{{{W}}}{kind}[@{{{W}}}id='{number}']")
            for kind in ("commentRangeStart", "commentRangeEnd", "commentReference")
        )
        assert [element.tag for element in (start.getnext(), end.getprevious())] == [
            f"{{{W}}}del",
            f"{{{W}}}ins",
        ]
        assert end.getnext() is anchor.getparent()
    for part in ("word/document.xml", "word/header1.xml", "word/footnotes.xml"):
        assert settle(after[part], accept=False) == settle(before[part], accept=False)
    assert f'"/{name}" ContentType="{OFFICE}.comments+xml"' in after["[Content_Types].xml"].decode()
    assert after["word/_rels/document.xml.rels"].decode().count(f"{RELATED}/comments") == 1
    assert correct(data, comments=True)[0] == made


ENTITIES = (
    f'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><w:document {NAMES}>&b;</w:document>'
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: b"PK\3\4" + bytes(99), "is no Word file, or a damaged one"),
        (lambda: word_file()[:-400], "is no Word file, or a damaged one"),
        ("他己经来了。".encode, "is no Word file, or a damaged one"),
        (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "has a password"),
        (
            lambda: word_file(**{"word/media/b.png": bytes(1 << 28)}),
            r"unpacks to 268,\d{3},\d{3} bytes",
        ),
        (lambda: word_file(**{"word/document.xml": ENTITIES}), "defines entities of XML"),
        (
            lambda: word_file(**{"word/document.xml": "<w:document>"}),
            "has damaged XML in word/document.xml",
        ),
    ],
)
def test_a_bad_file_is_named_and_the_next_goes_on(make, message, tmp_path, monkeypatch):
    """In one sentence; nothing of it changes."""
    monkeypatch.chdir(tmp_path)
    data = make()
    Path("a.docx").write_bytes(data)
    Path("b.md").write_text("他己经来了。", "utf-8")
    options = ("--model", "channel", "--lm", "words")
    done = CliRunner().invoke(cli, ["correct", *options, "--write", "a.docx", "b.md"])
    assert done.exit_code == 1
    line, after = done.stderr.splitlines()
    assert re.match(f"Error: a.docx {message}", line)
    assert after == "b.md: 1 edit"
    assert Path("a.docx").read_bytes() == data
    assert Path("b.md").read_text("utf-8") == "他已经来了。"


def test_however_a_file_is_damaged_it_is_refused_or_read():
    """No other error comes up, nor does a warning."""
    whole, random = word_file(), Random(7)
    refusals = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(random.choice([1, 2, 5])):
            at = len(data) - 1 - random.randrange(random.choice([900, len(data)]))
            data[at : at + random.choice([0, 1, 4])] = random.randbytes(random.choice([0, 1, 4]))
        try:
            correct(bytes(data), comments=True)
        except InputError:
            refusals += 1
    assert 200 < refusals < 400


def test_the_command_line_writes_a_copy(tmp_path, monkeypatch):
    """With the date that is given."""
    monkeypatch.chdir(tmp_path)
    Path("a.docx").write_bytes(word_file("<w:p><w:r><w:t>他己经来了。</w:t></w:r></w:p>"))
    options = ("--model", "channel", "--lm", "words", "--date", "2026-01-02")
    done = CliRunner().invoke(
        cli, ["correct", *options, "--file", "a.docx", "--out", "b.docx", "--diff"]
    )
    assert "-他己经来了。\n" in done.stdout
    text = parts_of(Path("b.docx").read_bytes())["word/document.xml"].decode()
    assert '<w:ins w:id="4" w:author="CEC-Zero" w:date="2026-01-02T00:00:00Z">' in text


MACRO = """<?xml version="1.0" encoding="UTF-8"?>
<script:module xmlns:script="http://openoffice.org/2000/script" script:name="Module1" \
script:language="StarBasic">
Sub Settle(source, target, command)
  Dim hidden(0) As New com.sun.star.beans.PropertyValue
  hidden(0).Name = "Hidden"
  hidden(0).Value = True
  document = StarDesktop.loadComponentFromURL(source, "_blank", 0, hidden())
  helper = createUnoService("com.sun.star.frame.DispatchHelper")
  helper.executeDispatch(document.CurrentController.Frame, command, "", 0, Array())
  Dim export(0) As New com.sun.star.beans.PropertyValue
  export(0).Name = "FilterName"
  export(0).Value = "MS Word 2007 XML"
  document.storeToURL(target, export())
  document.close(True)
End Sub
</script:module>"""
LIBRARY = """<?xml version="1.0" encoding="UTF-8"?>
<library:library xmlns:library="http://openoffice.org/2000/library" library:name="Standard" \
library:readonly="false" library:passwordprotected="false">
<library:element library:name="Module1"/></library:library>"""


def start_office(profile):
    """Return the beginning of a command of LibreOffice with a profile of its own."""
    return ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", "--norestore"]


NOTICE = """\
<w:p><w:r><w:rPr><w:b/><w:sz w:val="32"/></w:rPr><w:t>会议通知</w:t></w:r></w:p>
<w:p><w:r><w:t>各位同事：我门定于明天下午三点在二楼会议室开会，请大家</w:t></w:r>
<w:r><w:rPr><w:b/></w:rPr><w:t>按时参加</w:t></w:r>
<w:r><w:t>。会议材料己经发到各位的邮箱，请先在电脑上按装新的阅读软件。</w:t></w:r></w:p>
<w:sectPr><w:pgSz w:w="8400" w:h="1700"/>
<w:pgMar w:top="400" w:right="600" w:bottom="300" w:left="600"/></w:sectPr>
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("soffice") and shutil.which("pdftoppm")),
    reason="needs Debian's libreoffice-writer-nogui, poppler-utils and fonts-wqy-microhei",
)
def test_the_picture_of_the_guide_shows_the_changes(tmp_path):
    """As LibreOffice draws them; with CEC_PICTURE=FILE in the environment, it is drawn there."""
    (tmp_path / "a.docx").write_bytes(correct(word_file(NOTICE), Corrector())[0])
    command = [*start_office(tmp_path / "profile"), "--convert-to", "pdf", "a.docx"]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
    picture = os.environ.get("CEC_PICTURE", str(tmp_path / "a.png")).removesuffix(".png")
    draw = ["pdftoppm", "-png", "-singlefile", "-r", "150", tmp_path / "a.pdf", picture]
    subprocess.run(draw, check=True, timeout=60)
    words = subprocess.run(["pdftotext", tmp_path / "a.pdf", "-"], capture_output=True, check=True)
    assert "我门们定于" in words.stdout.decode()
    guide = Path(__file__).parents[2] / "docs/howto/word.png"
    for path in (guide, Path(f"{picture}.png")):
        assert path.stat().st_size < 60_000


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("soffice"), reason="needs Debian's libreoffice-writer-nogui")
@pytest.mark.parametrize("comments", [False, True])
def test_libreoffice_agrees(comments, tmp_path):
    """It opens the file; all changes accepted are the corrected texts, rejected those before.

    Comments stay with both; they shorten what LibreOffice shows of a bookmark that a field names.
    """
    profile, basic = tmp_path / "profile", tmp_path / "profile/user/basic/Standard"
    office = start_office(profile)
    subprocess.run([*office, "--terminate_after_init"], check=True, timeout=120)
    (basic / "Module1.xba").write_text(MACRO, "utf-8")
    (basic / "script.xlb").write_text(LIBRARY, "utf-8")
    body = BODY.replace("REF 己经", "QUOTE 己经") if comments else BODY
    data = word_file(body)
    made, _ = correct(data, comments=comments)
    right = {
        name: part.replace("按".encode(), "安".encode()) for name, part in parts_of(data).items()
    }

    def settle_in_office(data, command):
        source, target = tmp_path / "a.docx", tmp_path / "b.docx"
        source.write_bytes(data)
        macro = (
            f"macro:///Standard.Module1.Settle({source.as_uri()},{target.as_uri()},.uno:{command})"
        )
        subprocess.run([*office, macro], check=True, timeout=120)
        texts = parts_of(target.read_bytes())
        target.unlink()
        root = etree.fromstring(texts["word/document.xml"])
        if comments and data is made:
            said = texts["word/comments.xml"].decode()
            assert len(re.findall(r"按(装?) → 安\1 ", said)) == 6
        return ["".join(p.itertext(f"{{{W}}}t")) for p in root.iter(f"{{{W}}}p")]

    accepted = settle_in_office(made, "AcceptAllTrackedChanges")
    assert accepted == settle_in_office(word_file(**right), "AcceptAllTrackedChanges")
    assert "请安装这个程序" in accepted
    rejected = settle_in_office(made, "RejectAllTrackedChanges")
    assert rejected == settle_in_office(data, "RejectAllTrackedChanges")
    assert "请按装这个程序" in rejected
