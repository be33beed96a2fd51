"""What a dataset's format can do, as far as owners plan by it. Orphans may lie where there is no format to ask."""

from __future__ import annotations

from ebbtide.acts.act import Act
from ebbtide.formats.base import supports
from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog


def removes_in_any_order(catalog: Catalog) -> bool:
    """Whether younger versions can go before older ones."""
    return bool(supports(load_format(catalog.format), Capability.ANY_ORDER))


def forgets_versions(catalog: Catalog) -> bool:
    """Whether a version that went is no longer listed."""
    return bool(supports(load_format(catalog.format), Capability.FORGETS))


def why_not_one_by_one(act: Act) -> str | None:
    """Why files that an earlier act left cannot go by their paths: the format has an operation of its own for them."""
    if act.removal is not None or not act.leftover:
        return None
    single = supports(load_format(act.catalog.format), Capability.SINGLE_FILES)
    return None if single else single.reason
