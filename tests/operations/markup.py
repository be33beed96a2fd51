"""HTML read strictly: every tag is closed where it should be, every id is there once, and nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_EMPTY = {"meta", "br"}
_FETCHES = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}


@dataclass(eq=False)
class Page(HTMLParser):
    """What stands on a page: its text, and the title and description of each chart."""

    tags: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    charts: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, str | None]] = []
        self._policy: str | None = None

    @classmethod
    def read(cls, text: str) -> Page:
        page = cls()
        page.feed(text)
        page.close()
        assert page._open == []
        assert text.startswith("<!doctype html>\n")
        assert page._policy == "default-src 'none'; style-src 'unsafe-inline'"
        for ids in page.charts:
            assert all(page.ids[each].strip() for each in ids), "a chart says in words what it shows"
        return page

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        assert len(said) == len(attrs), tag
        assert tag not in _FETCHES
        assert not {"src", "href", "style", "xlink:href"} & set(said), tag
        assert not any(name.startswith("on") for name in said), tag
        if tag == "meta" and said.get("http-equiv") == "Content-Security-Policy":
            self._policy = said["content"]
        if tag == "svg" and said.get("aria-hidden") != "true":
            assert said["role"] == "img"
            self.charts.append((said["aria-labelledby"] or "").split())
        if (name := said.get("id")) is not None:
            assert name not in self.ids
            self.ids[name] = ""
        self.tags.append(tag)
        if tag not in _EMPTY:
            self._open.append((tag, name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        assert self._open or not data.strip()
        if self._open and (name := self._open[-1][1]) is not None:
            self.ids[name] += data
        if not {"style", "title", "desc"} & {tag for tag, _ in self._open}:
            self.words.append(data)
