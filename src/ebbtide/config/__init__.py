"""What people write: YAML files that become typed, checked values."""

from ebbtide.config.project import LedgerSettings, Project, SparkSettings, load_project

__all__ = ["LedgerSettings", "Project", "SparkSettings", "load_project"]
