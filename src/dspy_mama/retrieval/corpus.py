"""Markdown documents with YAML front matter: the evidence as people write and read it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import yaml

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.core.resources import shipped
from dspy_mama.core.wording import plural
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.documents import document_files
from dspy_mama.settings import CorpusSettings, RetrieverSettings

JURISDICTIONS: Final = ("JP", "US", "EU", "DE", "INT")
COLLECTIONS: Final = ("law", "ethics", "guidance", "encyclopedic")
_SHOWN_FAULTS: Final = 20


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the corpus.

    Attributes:
        id: Unique in the corpus; letters, digits, `.`, `_` and `-`.
        title: Title.
        publisher: Who published it.
        url: http(s) address where a reader can check it, or "".
        licence: SPDX id or name of the licence.
        language: ISO 639-1.
        jurisdiction: One of `JURISDICTIONS`; `INT` = no single one.
        domains: Risk domains for which it is evidence, in the order of `DOMAINS`.
        collection: One of `COLLECTIONS`.
        text: The body, without front matter, with Unix line ends.
        accessed: ISO date on which the source was read, or "".
        references: Sources of the facts.
        file: Path below the corpus folder, with `/`; not part of the content.
    """

    id: str
    title: str
    publisher: str
    url: str
    licence: str
    language: str
    jurisdiction: str
    domains: tuple[str, ...]
    collection: str
    text: str
    accessed: str = ""
    references: tuple[str, ...] = ()
    file: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """Hash of everything but the file's name."""
        return object_hash({f.name: getattr(self, f.name) for f in fields(self) if f.compare}, 16)


class _FieldError(Exception):
    """What is wrong with one field."""


def load_corpus(settings: CorpusSettings | None = None) -> tuple[Document, ...]:
    """Reads every `*.md` below the corpus folder, sorted by id; `README.md` and hidden files are no documents.

    Raises:
        DeclarationError: The folder is missing or empty, or documents are at fault; every fault names file and field.
    """
    root = corpus_folder(settings)
    documents: dict[str, Document] = {}
    faults: list[str] = []
    for path in document_files(root):
        name = path.relative_to(root).as_posix()
        found = _read(path, name)
        if isinstance(found, list):
            faults += found
        elif found.id in documents:
            faults.append(f"{name}: id: {found.id!r} is already the id of {documents[found.id].file}; give it its own")
        else:
            documents[found.id] = found
    if faults:
        more = f"\n  ... and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
        shown = "\n".join(f"  {fault}" for fault in faults[:_SHOWN_FAULTS])
        raise DeclarationError(f"{root}: {len(faults)} {plural('fault', len(faults))} in the corpus\n{shown}{more}")
    if not documents:
        fetch = IndexCommands.of(settings, None, RetrieverSettings()).fetch if settings is not None else None
        hint = f"fetch some with `{fetch}`" if fetch else "set corpus.path"
        raise DeclarationError(f"{root}: no document (*.md) in the corpus folder; {hint}")
    return tuple(documents[key] for key in sorted(documents))


def corpus_folder(settings: CorpusSettings | None = None) -> Path:
    """Returns the folder of documents: the given one, else the shipped corpus.

    Raises:
        DeclarationError: It does not exist, or sources are named without the folder that they go to.
    """
    if settings is None or (settings.folder is None and not settings.has_sources):
        return shipped("data", "corpus")
    fetch = IndexCommands.of(settings, None, RetrieverSettings()).fetch
    if settings.folder is None:
        raise DeclarationError(
            f"corpus.out: name the folder of the documents of corpus {settings.name!r}, such as corpus.out=evidence, "
            f"here too, and fetch them with `{fetch}`"
        )
    root = Path(settings.folder).expanduser()
    if not root.is_dir():
        field = "corpus.path" if settings.path is not None else "corpus.out"
        hint = f"; fetch them with `{fetch}`" if fetch else ""
        raise DeclarationError(f"{field}: {root} is not a folder; give the one of the documents{hint}")
    return root


def parse_document(source: str, file: str = "") -> Document:
    """Reads one document from its text.

    Raises:
        DeclarationError: Front matter or body is at fault; every fault names file and field.
    """
    found = _parse(source, file)
    if isinstance(found, list):
        raise DeclarationError("\n".join(found))
    return found


def _read(path: Path, name: str) -> Document | list[str]:
    try:
        return _parse(path.read_bytes().decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        return [f"{name}: not UTF-8 (byte {error.start}); save it as UTF-8"]
    except OSError as error:
        return [f"{name}: cannot be read ({error.strerror})"]


def _parse(source: str, file: str) -> Document | list[str]:
    parts = re.match(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)(.*)\Z", source.replace("\r\n", "\n"), re.DOTALL)
    if parts is None:
        return [f"{file}: front matter: missing; begin the file with `---`, the fields and `---`"]
    try:
        # `safe_load` builds plain data only: a document cannot run code.
        header = yaml.safe_load(parts.group(1) or "")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 2}" if mark else ""
        reason = getattr(error, "problem", None) or "not YAML"
        return [f"{file}: front matter{where}: {reason}; quote values that hold `:` or `#`"]
    if not isinstance(header, Mapping):
        return [f"{file}: front matter: must be `field: value` lines"]
    values, faults = _fields(header, file)
    text = parts.group(2).strip()
    if not text:
        faults.append(f"{file}: body: empty; write the document below the front matter")
    return faults or Document(**values, text=text, file=file)


def _fields(header: Mapping[Any, Any], file: str) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    faults = []
    for name, read in _READERS.items():
        try:
            if header.get(name) is None:
                if name not in ("accessed", "references"):
                    raise _FieldError("missing")
                continue
            values[name] = read(header[name])
        except _FieldError as fault:
            faults.append(f"{file}: {name}: {fault}")
    return values, faults


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _FieldError(f"must be text, not {value!r}; put it in quotes")
    return " ".join(value.split())


def _id(value: Any) -> str:
    # `#` parts document and chunk in a passage's id, and a citation must survive an LM: plain letters only.
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        raise _FieldError(
            f"{value!r} must be 1 to 100 letters, digits, `.`, `_` or `-`, in quotes where it is a number"
        )
    return value


def _url(value: Any) -> str:
    if value != "" and not re.match(r"https?://[^\s<>\"']+\Z", str(value)):
        raise _FieldError(f"{value!r} must start with http:// or https://")
    return str(value)


def _language(value: Any) -> str:
    if value is False:
        raise _FieldError("YAML reads `no` as false; put it in quotes")
    if not isinstance(value, str) or not re.fullmatch(r"[a-z]{2}", value):
        raise _FieldError(f"{value!r} must be a two-letter ISO 639-1 code such as en or ja")
    return value


def _one_of(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in allowed:
            raise _FieldError(f"{value!r} must be one of {', '.join(allowed)}")
        return str(value)

    return read


def _domains(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or any(item not in DOMAINS for item in given):
        raise _FieldError(f"{value!r} must be a list of {', '.join(DOMAINS)}")
    return tuple(domain for domain in DOMAINS if domain in given)


def _date(value: Any) -> str:
    try:
        return (value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))).isoformat()[:10]
    except ValueError:
        raise _FieldError(f"{value!r} must be a date such as 2026-11-30") from None


def _references(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _FieldError("must be a list of texts; put items that hold `:` in quotes")
    return tuple(" ".join(item.split()) for item in value)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "id": _id,
    "title": _text,
    "publisher": _text,
    "url": _url,
    "licence": _text,
    "language": _language,
    "jurisdiction": _one_of(JURISDICTIONS),
    "domains": _domains,
    "collection": _one_of(COLLECTIONS),
    "accessed": _date,
    "references": _references,
}
