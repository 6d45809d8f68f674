"""Initialization options as one frozen struct: read once, each bad setting reported, never raised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from mb_lsp import folders


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """What a client may set under ``initializationOptions``; ``docs/settings.md`` is its table.

    Attributes:
        device: Choice of device by part of its name or key; empty takes the best one.
        budget_seconds: Seconds of work one optimization may spend.
        budget_candidates: Candidates one optimization may try.
        precision: What rounding a variant may change.
        knowledge_folder: Where the knowledge base lies; empty for the user's data folder.
        data_folder: Where jobs and trust lie; empty for the user's data folder.
        code_lens: Whether to show a lens above each kernel.
        hover: Whether to answer hovers.
        diagnostics: Whether to mark kernels that have a result, or a question, with a hint.
    """

    device: str = ""
    budget_seconds: float = 60.0
    budget_candidates: int = 10_000
    precision: Literal["same", "bitwise"] = "same"
    knowledge_folder: str = ""
    data_folder: str = ""
    code_lens: bool = True
    hover: bool = True
    diagnostics: bool = True

    @property
    def data(self) -> Path:
        """The user's data folder."""
        return Path(self.data_folder).expanduser() if self.data_folder else folders.data()

    @property
    def jobs(self) -> Path:
        """The folder with one folder a job."""
        return self.data / "jobs"

    @property
    def knowledge(self) -> Path:
        """The knowledge base's folder."""
        if self.knowledge_folder:
            return Path(self.knowledge_folder).expanduser()
        return self.data / "knowledge"


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}


def read(options: object) -> tuple[Settings, list[str]]:
    """Read a client's options.

    Returns:
        The settings, with defaults where an option is absent or bad, and one sentence for each bad option.
    """
    if options is None:
        return Settings(), []
    if not isinstance(options, Mapping):
        return Settings(), ["settings must be an object of names and values; the defaults are used"]
    good: dict[str, object] = {}
    problems: list[str] = []
    for key, value in options.items():
        if key not in _FIELDS:
            problems.append(f"there is no setting {key!r}; see docs/settings.md")
            continue
        try:
            good[_FIELDS[key].name] = _checked(key, value)
        except (msgspec.ValidationError, ValueError) as error:
            problems.append(f"setting {key!r}: {error}; the default {_FIELDS[key].default!r} is used")
    return Settings(**good), problems  # type: ignore[arg-type]  # each was converted to its field's type


def _checked(key: str, value: object) -> object:
    result: object = msgspec.convert(value, _FIELDS[key].type)
    if key.startswith("budget") and isinstance(result, (int, float)) and not 0 < result < 1e9:
        raise ValueError("must be above zero")
    return result
