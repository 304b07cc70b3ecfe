"""Where MLflow keeps runs, said in absolute terms, and how it is opened without side effects on the process."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dspy_mama.core.errors import DeclarationError

if TYPE_CHECKING:
    from mlflow import MlflowClient

_REMOTE: Final = ("http://", "https://", "databricks", "uc:")
_DATABASE: Final = re.compile(r"^(sqlite|postgresql|mysql|mssql)(\+\w+)?:")

_ENVIRONMENT: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # With MLflow's own 7 retries one call to a server that is gone blocks for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    # A bar for files of a few kilobytes would stand in the middle of a command's own lines.
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
"""Set before MLflow is imported (it reads some of them then), and only where the user has not."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Address of a tracking store.

    Attributes:
        uri: Tracking URI; paths in it are absolute.
        artifacts: URI for the artifacts of new experiments; None = a remote server decides.
    """

    uri: str
    artifacts: str | None


def locate(uri: str | None, root: Path | str) -> StoreLocation:
    """Finds the store that `tracking.uri` and `tracking.root` mean.

    Args:
        uri: Address of a server or database; None = sqlite under `root`.
        root: Folder of runs and artifacts, relative to the working folder or absolute.

    Raises:
        DeclarationError: A file store (`file:` or a plain folder) is asked for, which MLflow no longer has.
    """
    folder = Path(root).absolute()
    if not uri:
        return StoreLocation(f"sqlite:///{(folder / 'mlflow.db').as_posix()}", (folder / "artifacts").as_uri())
    if uri.startswith(_REMOTE):
        return StoreLocation(uri, None)
    if _DATABASE.match(uri):
        return StoreLocation(_absolute_sqlite(uri), (folder / "artifacts").as_uri())
    source = uri.removeprefix("file://").removeprefix("file:")
    raise DeclarationError(
        f"tracking.uri={uri!r}: MLflow no longer keeps runs in plain folders. Leave tracking.uri empty (sqlite in "
        f"{folder.name}/mlflow.db), or give a server (http://...) or a database (sqlite:///PATH). "
        f"To take old runs along: mlflow migrate-filestore --source {source} --target sqlite:///mlflow.db"
    )


def _absolute_sqlite(uri: str) -> str:
    scheme, mark, path = uri.partition(":///")
    if not scheme.startswith("sqlite") or not mark or path.startswith((":memory:", "/")) or not path:
        return uri
    return f"{scheme}:///{Path(path).absolute().as_posix()}"


def open_client(location: StoreLocation) -> MlflowClient:
    """Returns a client of the store; MLflow's global tracking URI and active run stay as they are.

    Raises:
        Exception: Whatever MLflow raises where the store cannot be opened.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    if location.uri.startswith("sqlite:////"):
        Path(location.uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    with quiet("mlflow.store.db.utils", "alembic"):
        return MlflowClient(tracking_uri=location.uri, registry_uri=location.uri)


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Holds back what loggers of MLflow say on the way, such as the dozens of lines when a new database is made."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
