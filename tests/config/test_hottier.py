"""`hottier/*.yml`: horizons, cold tables and connection values."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.hottier import load_hot_tables
from ebbtide.errors import InputError

_TABLE = "  - {name: public.m, time: at, chunk: 1d, tier_after: 7d, drop_after: 30d, cold: lake.hot.m}\n"


def _write(root: Path, text: str) -> Path:
    (root / "hottier").mkdir(exist_ok=True)
    (root / "hottier" / "m.yml").write_text(text, encoding="utf-8")
    return root


def test_connection_values_come_from_the_environment_and_are_never_shown(tmp_path: Path) -> None:
    root = _write(tmp_path, f"server: postgresql://u:${{PW}}@h/$${{db}}\ntables:\n{_TABLE}")
    table = load_hot_tables(root, {"PW": "s3cr3t"})["public.m"]
    assert table.server.secret.get_secret_value() == "postgresql://u:s3cr3t@h/${db}"
    assert "s3cr3t" not in repr(table) + str(table) + str(table.server)


def test_only_connection_values_are_taken_from_the_environment(tmp_path: Path) -> None:
    named = _TABLE.replace("public.m", "'public.${x}'")
    assert "public.${x}" in load_hot_tables(_write(tmp_path, f"server: a\ntables:\n{named}"), {"x": "y"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"server: ${{NO}}\ntables:\n{_TABLE}", "m.yml:1: the environment variable NO is not set"),
        (f"server: a\ntables:\n{_TABLE.replace('30d', '7d')}", "tier_after 7d is not shorter than drop_after 7d"),
        (f"server: a\ntables:\n{_TABLE.replace('7d', '31d')}", "tier_after 31d is not shorter than drop_after 30d"),
        (f"server: a\ntables:\n{_TABLE}{_TABLE.replace('.m,', '.n,')}", "lake.hot.m would have two mirrors"),
        (f"server: a\ntables:\n{_TABLE}{_TABLE}", "public.m stands twice"),
        (f"server: a\ntables:\n{_TABLE}{_TABLE.replace('c.m', 'c.%6d').replace('hot.m', 'hot.n')}", "stands twice"),
        (
            f"server: a\ntables:\n{_TABLE}{_TABLE.replace('c.m', 'c.n').replace('hot.m', 'hot.%6d')}",
            "lake.hot.m would have two mirrors",
        ),
        ("server: a\ntables:\n  - {name: m, time: at, chunk: 1d}\n", "not a table: 'm'"),
        ("server: a\ntables:\n  - {name: m, time: at, chunk: 1m}\n", "not a chunk's length: '1m'"),
        ("server: a\ntables:\n  - {name: m, time: at, chunk: 1d, tier_after: 7d}\n", "tier_after without `cold`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"m\.yml:\d+") as refused:
        load_hot_tables(_write(tmp_path, text), {})
    assert said in refused.value.message
    assert refused.value.hint
