"""Which Iceberg tables a catalog has, and the metadata file that each one stands at.

That file's name is the token: every commit writes a new one. A JDBC catalog answers for all of its tables at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ebbtide.errors import InputError, UnreadableError, keep_trace
from ebbtide.formats.warehouse import open_warehouse
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from ebbtide.model.unreachable import why_unreachable
from ebbtide.storage.files import Store, StoredObject, open_store

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as Service

_HADOOP_METADATA = re.compile(r"^v(\d+)(\.gz)?\.metadata\.json(\.gz)?$")


def discover(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    kind = catalog.type or "hadoop"
    if kind not in _BY_TYPE:  # of a project file it is known before; a catalog can be made without one
        raise InputError(
            f"catalog {catalog.name}: unknown Iceberg catalog type {kind!r}", hint=f"one of {', '.join(_BY_TYPE)}"
        )
    return _BY_TYPE[kind](catalog)


def _found(catalog: Catalog, namespace: tuple[str, ...], table: str, metadata: str) -> TableHandle:
    # Where the metadata lies says where the table is, until its metadata is read: `read` takes the recorded location.
    folder = normalise(metadata).rsplit("/metadata/", 1)[0]
    return TableHandle(DatasetId(catalog.name, namespace, table), folder, normalise(metadata), metadata)


def _jdbc(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    import sqlalchemy as sa

    uri = catalog.options.get("uri", "")
    try:
        engine = sa.create_engine(sqlalchemy_url(catalog, uri), poolclass=sa.NullPool)
        with engine.connect() as connection:
            tables = sa.Table("iceberg_tables", sa.MetaData(), autoload_with=connection)
            query = sa.select(tables.c.table_namespace, tables.c.table_name, tables.c.metadata_location)
            query = query.where(tables.c.catalog_name == catalog.name)
            if "iceberg_type" in tables.c:  # schema version V1 keeps views in the same table
                query = query.where(sa.or_(tables.c.iceberg_type.is_(None), tables.c.iceberg_type == "TABLE"))
            rows = connection.execute(query.order_by(tables.c.table_namespace, tables.c.table_name)).all()
    except (sa.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        # Neither the address nor the driver's words, which quote it: parts of it may come from the environment.
        raise UnreadableError(
            catalog.name, f"the catalog does not answer: {_why(error)}", hint=_CHECK.format(catalog.name)
        ) from error
    for namespace, table, metadata in rows:
        id_ = DatasetId(catalog.name, tuple(namespace.split(".")), table)
        if metadata is None:
            yield NotFound(str(id_), "the catalog has no metadata location for it")
        else:
            yield _found(catalog, id_.namespace, table, metadata)


_CHECK = "check `uri` of catalog {}"


def _why(error: Exception) -> str:
    """SQLite's words are about the file, whose path is known; a server's quote its address."""
    cause = getattr(error, "orig", None) or error
    return str(cause) if type(cause).__module__ == "sqlite3" else why_unreachable(cause)


def sqlalchemy_url(catalog: Catalog, uri: str, *, writable: bool = False) -> str:
    """The catalog's JDBC address as SQLAlchemy spells it."""
    import sqlalchemy as sa

    if uri.startswith("jdbc:sqlite:"):
        path = uri.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
        if writable:
            return f"sqlite:///{path}"
        if open_store(path).stat(path) is None:  # SQLite would make an empty database
            raise UnreadableError(catalog.name, f"no catalog database at {path}", hint=_CHECK.format(catalog.name))
        # SQLite reads an URI here: what means something in one is escaped.
        return f"sqlite:///file:{quote(path)}?mode=ro&uri=true"
    if uri.startswith("jdbc:postgresql:"):
        url = sa.make_url(uri.removeprefix("jdbc:")).set(drivername="postgresql+psycopg")
        user = catalog.options.get("jdbc.user") or url.query.get("user") or url.username
        password = catalog.options.get("jdbc.password") or url.query.get("password") or url.password
        query = {k: v for k, v in url.query.items() if k not in ("user", "password")}
        return url.set(username=user, password=password, query=query).render_as_string(hide_password=False)  # type: ignore[arg-type]
    raise InputError(
        f"catalog {catalog.name}: its `uri` cannot be read", hint="jdbc:sqlite:FILE and jdbc:postgresql://… work"
    )


def _hadoop(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    store, namespaces = open_warehouse(catalog)
    return _walk(catalog, store, namespaces, ())


def _walk(
    catalog: Catalog, store: Store, entries: list[StoredObject], names: tuple[str, ...]
) -> Iterator[TableHandle | NotFound]:
    for entry in entries:
        if not entry.is_folder or entry.name.startswith("."):
            continue
        metadata = store.list(f"{entry.path}/metadata") if names else []
        if versions := [(int(m.group(1)), e.path) for e in metadata if (m := _HADOOP_METADATA.match(e.name))]:
            yield _found(catalog, names, entry.name, max(versions)[1])
        elif any(e.name == "version-hint.text" for e in metadata):
            yield NotFound(
                str(DatasetId(catalog.name, names, entry.name)),
                f"no v<n>.metadata.json in {entry.path}/metadata",
                hint="restore the table's metadata file, or remove the folder if the table was dropped",
            )
        else:
            yield from _walk(catalog, store, store.list(entry.path), (*names, entry.name))


_RETRIES = "glue.max-retries"


def _service(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    """REST, Hive and Glue through pyiceberg: one answer per table, several at a time."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError, NotInstalledError

    options: dict[str, Any] = dict(catalog.options)
    if (retries := options.get(_RETRIES)) is not None and retries.isdigit():
        options[_RETRIES] = int(retries)  # pyiceberg hands it on as it is, and the client takes no text
    try:
        service = load_catalog(catalog.name, type=catalog.type, warehouse=catalog.warehouse, **options)
        names = [name for namespace in _namespaces(service) for name in service.list_tables(namespace)]
    except NotInstalledError:
        hint = f"pip install 'pyiceberg[{catalog.type}]', where Ebbtide is installed"
        raise UnreadableError(
            catalog.name, f"the client of `type: {catalog.type}` is not installed", hint=hint
        ) from None
    except Exception as error:  # pyiceberg passes on whatever the service's client raises
        raise UnreadableError(
            catalog.name, f"the catalog does not answer: {why_unreachable(error)}", hint=_CHECK.format(catalog.name)
        ) from error

    def ask(name: tuple[str, ...]) -> TableHandle | NotFound | None:
        id_ = str(DatasetId(catalog.name, name[:-1], name[-1]))
        try:
            return _found(catalog, name[:-1], name[-1], service.load_table(name).metadata_location)
        except NoSuchIcebergTableError:
            return None
        except NoSuchTableError as error:
            # Dropped since it was listed, or it is the table's metadata that the service does not find (hazard 33).
            said = f"the catalog lists it and does not find it: {error}"
            return NotFound(id_, said, hint="restore its metadata") if _lists(service, name) else None
        except Exception as error:
            keep_trace(error)
            return NotFound(id_, f"the catalog does not answer for it: {why_unreachable(error)}")

    with ThreadPoolExecutor(8) as pool:
        yield from (answer for answer in pool.map(ask, sorted(names)) if answer is not None)


def _lists(service: Service, name: tuple[str, ...]) -> bool:
    """Whether a catalog still names a table; who does not answer may."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    try:
        return name in service.list_tables(name[:-1])
    except NoSuchNamespaceError:
        return False
    except Exception as error:
        keep_trace(error)
        return True


def _namespaces(service: Service) -> list[tuple[str, ...]]:
    """All namespaces of a catalog, level by level: one question for each of them.

    A catalog without nesting has nothing below, gives the top once more, or refuses to look below any of a level.
    """
    from pyiceberg.exceptions import BadRequestError

    def below(namespace: tuple[str, ...]) -> set[tuple[str, ...]] | Exception:
        try:
            children = service.list_namespaces(namespace)
        except (BadRequestError, NotImplementedError) as error:
            return error
        return {child for child in children if child[:-1] == namespace}

    level = set(service.list_namespaces())
    found: list[tuple[str, ...]] = []
    with ThreadPoolExecutor(8) as pool:
        while level:
            found += sorted(level)
            answers = list(pool.map(below, sorted(level)))
            refused = [answer for answer in answers if isinstance(answer, Exception)]
            if refused and len(refused) < len(answers):
                raise refused[0]
            level = {child for answer in answers if not isinstance(answer, Exception) for child in answer}
    return found


_BY_TYPE: dict[str, Callable[[Catalog], Iterator[TableHandle | NotFound]]] = {
    "jdbc": _jdbc,
    "hadoop": _hadoop,
    "rest": _service,
    "hive": _service,
    "glue": _service,
}
