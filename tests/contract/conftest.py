"""The order of these tests among all."""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items) -> None:
    """Put these tests first: they take longest, and one process runs them while another runs the rest."""
    items.sort(key=lambda item: item.path.parent != HERE)
