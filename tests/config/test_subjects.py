"""`subjects.yml`: identities, how their values are compared, and tables that know one by another."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.subjects import IdentityColumn, load_identities
from ebbtide.errors import InputError

SUBJECTS = """\
subjects:
  user_id: {columns: [lake.app.users.user_id, lake.app.users.parent]}
  email: {columns: [lake.app.mail.to], match: normalised-email}
identities:
  - {table: lake.app.users, key: user_id, gives: {email: mail}}
"""


def load(root: Path, text: str) -> object:
    (root / "subjects.yml").write_text(text)
    return load_identities(root)


def test_a_column_that_gives_an_identity_is_one_of_its_columns(tmp_path: Path) -> None:
    (tmp_path / "subjects.yml").write_text(SUBJECTS)
    found = load_identities(tmp_path)
    assert found.subjects["email"].columns == (
        IdentityColumn("lake.app.mail", "to"),
        IdentityColumn("lake.app.users", "mail"),
    )
    assert (found.subjects["user_id"].match, found.subjects["email"].match) == ("exact", "normalised-email")
    (table,) = found.tables
    assert [place.column for place in table.by] == ["user_id", "parent"]
    assert table.gives == {"email": IdentityColumn("lake.app.users", "mail")}


def test_a_project_without_the_file_has_no_identities(tmp_path: Path) -> None:
    assert not load_identities(tmp_path).subjects


@pytest.mark.parametrize(
    ("was", "is_", "line", "said", "hint"),
    [
        ("key: user_id", "key: usr_id", 5, "'usr_id' is no identity", "did you mean 'user_id'?"),
        ("{email: mail}", "{mail: mail}", 5, "'mail' is no identity", "did you mean 'email'?"),
        ("{email: mail}", "{user_id: id}", 5, "'user_id' is the key, and is given, too", "take it out"),
        ("key: user_id, gives: {email", "key: email, gives: {user_id", 5, "known by email, and none of", "of email"),
        ("gives:", "given:", 5, "unknown key 'identities.0.given'", "did you mean 'gives'?"),
        ("{email: mail}", "{}", 5, "identities.0.gives", ""),
        ("table: lake.app.users", "table: users", 5, "not a column", "catalog.namespace.table.column"),
        ("[lake.app.mail.to", "[users", 3, "not a column", "or schema.table.column of a table of hottier/*.yml"),
        ("normalised-email", "loose", 3, "subjects.email.match", "write 'exact', 'casefold' or 'normalised-email'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, was: str, is_: str, line: int, said: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, SUBJECTS.replace(was, is_))
    assert f"subjects.yml:{line}: " in caught.value.message
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")
