"""What code, tests and documentation refer to lies in the repository: sections, invariants, hazards, pages, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_KINDS = ("*.py", "*.sql", "*.md", "*.yml", "*.toml")
_SPEC = re.compile(r"§(\d+)(?:,? [\"`]([^\"`]+)[\"`])?")
_FORMATS = re.compile(r"formats\.md,? \"([^\"]+)\"")
_NUMBERED = re.compile(r"\b(invariant|hazard)s? (\d+(?:(?:, | and |–)\d+)*)")
_PAGE = re.compile(r"(?<![\w/.*-])((?:docs/)?(?:decisions/)?[\w-]+\.md)\b")
_LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")
_OTHERS = {"readme.md", "signed-note.md", "tlog-cosignature.md"}
"""Files of tests, and pages of others."""


@cache
def sources() -> list[Path]:
    found = [
        path
        for folder in ("src", "tests", "docs", "benchmarks")
        for kind in _KINDS
        for path in (ROOT / folder).rglob(kind)
    ]
    found = [path for path in found if path != Path(__file__) and "__pycache__" not in path.parts]
    assert len(found) > 500
    return [*sorted(found), *sorted(ROOT.glob("*.md")), ROOT / "Makefile"]


@cache
def text_of(path: Path) -> str:
    """A file in one line: a citation may be broken over two, in a comment too."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(re.sub(r"^\s*(?:#|--)\s", "", line).strip() for line in lines)


def citations(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for path in sources():
        for match in pattern.finditer(text_of(path)):
            yield str(path.relative_to(ROOT)), match


def sections(page: str) -> dict[str, str]:
    parts = re.split(r"^##+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (" ".join(part.split()) for part in parts[2::2]), strict=True))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_section_of_the_spec_that_is_cited_is_there_with_the_words_that_are_quoted() -> None:
    by_number = {title.split()[0].removeprefix("§"): body for title, body in sections("spec.md").items()}
    cited = list(citations(_SPEC))
    assert len(cited) > 100
    wrong = [(where, m[0]) for where, m in cited if m[1] not in by_number or (m[2] or "") not in by_number[m[1]]]
    assert wrong == []


def test_every_section_of_the_page_on_formats_that_is_cited_is_there() -> None:
    cited = list(citations(_FORMATS))
    assert len(cited) > 8
    assert [(where, m[0]) for where, m in cited if m[1] not in sections("formats.md")] == []


@pytest.mark.parametrize(
    ("kind", "page", "number"),
    [("invariant", "design.md", r"^(\d+)\. \*\*"), ("hazard", "hazards.md", r"^### (\d+)\. ")],
)
def test_every_invariant_and_hazard_that_is_cited_is_there(kind: str, page: str, number: str) -> None:
    there = set(re.findall(number, (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE))
    cited = [(where, n) for where, m in citations(_NUMBERED) if m[1] == kind for n in re.findall(r"\d+", m[2])]
    assert len(cited) > 8
    assert [(where, n) for where, n in cited if n not in there] == []


def test_every_page_that_is_named_is_there() -> None:
    wrong = []
    for where, match in citations(_PAGE):
        name = match[1]
        places = (ROOT / name, DOCS / name, (ROOT / where).parent / name, ROOT / "benchmarks" / name)
        if name not in _OTHERS and not any(place.exists() for place in places):
            wrong.append((where, name))
    assert wrong == []


def test_every_link_leads_somewhere_and_a_name_in_code_is_in_the_file_that_it_links_to() -> None:
    wrong, into_code = [], 0
    for path in [page for page in sources() if page.suffix == ".md"]:
        for said, target in _LINK.findall(path.read_text(encoding="utf-8")):
            if target.startswith(("http://", "https://", "mailto:")):
                continue
            name, _, anchor = target.partition("#")
            place = path if not name else (path.parent / name)
            if not place.exists() or (anchor and anchor not in anchors(place)):
                wrong.append((str(path.relative_to(ROOT)), target))
            elif place.suffix in (".py", ".sql"):
                into_code += 1
                names = [part for part in re.findall(r"`([\w.]+)`", said) if "/" not in part]
                code = place.read_text(encoding="utf-8")
                wrong += [(str(path.relative_to(ROOT)), said) for name in names if name.rpartition(".")[2] not in code]
    assert wrong == []
    assert into_code > 15, "the walk through the code in docs/architecture.md"
