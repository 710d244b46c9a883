"""README.md and README.zh-CN.md are one page in two languages: only words differ, never what is run, shown or linked."""

import re
from pathlib import Path

from .markdown import cells, read

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
LANGUAGES = ("README.md", "README.zh-CN.md")
FIGURE = re.compile(r"[\d.,]*")


def prose(path):
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.S | re.M)


def sections(path):
    """The level of each heading and what stands under it, without the code."""
    found = re.split(r"^(#+) .*$", prose(path), flags=re.M)[1:]
    return list(zip(map(len, found[::2]), found[1::2], strict=True))


def links(text):
    return sorted(link for link in re.findall(r"\]\(([^)]+)\)", text) if link not in LANGUAGES)


def kinds(path):
    """What each line is, paragraphs aside: a heading, an item, a row, a mark, a block."""
    starts = ("#", "* ", "1. ", "2. ", "3. ", "4. ", "|", "![", "<!--", "```")
    lines = path.read_text().splitlines()
    return [next(s for s in starts if line.startswith(s)) for line in lines if line.startswith(starts)]


def test_each_page_links_the_other_at_its_top():
    for page, other in ((ENGLISH, CHINESE), (CHINESE, ENGLISH)):
        assert f"]({other.name})" in "".join(page.read_text().splitlines()[:3])


def test_sections_have_the_same_levels_links_and_code_in_their_sentences():
    english, chinese = sections(ENGLISH), sections(CHINESE)
    assert [level for level, _ in english] == [level for level, _ in chinese]
    for (_, one), (_, other) in zip(english, chinese, strict=True):
        assert links(one) == links(other)
        assert sorted(re.findall(r"`[^`]+`", one)) == sorted(re.findall(r"`[^`]+`", other))


def test_headings_items_rows_marks_and_blocks_come_in_the_same_order():
    assert kinds(ENGLISH) == kinds(CHINESE)


def test_blocks_and_their_marks_are_the_same():
    english, chinese = read(ENGLISH), read(CHINESE)
    assert [(b.kind, b.marks) for b in english] == [(b.kind, b.marks) for b in chinese]
    for one, other in zip(english, chinese, strict=True):
        if one.kind != "table":
            assert one.lines == other.lines


def test_tables_have_the_same_figures():
    for one, other in zip(read(ENGLISH), read(CHINESE), strict=True):
        if one.kind == "table":
            assert [figures(row) for row in cells(one)] == [figures(row) for row in cells(other)]


def figures(row):
    """Each cell that is a figure or empty; None for words."""
    return [cell if FIGURE.fullmatch(cell) else None for cell in row]
