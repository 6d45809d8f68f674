"""Where a host program launches a kernel, and the texts there that decide over which sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Language = Literal["c", "cpp", "python"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a host program."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a call states a global or local size.

    Attributes:
        whole: The argument at the call.
        elements: The size of each dimension where it is written, at the call or where a variable gets its
            value; empty where the argument is NULL or None.
        name: A variable that holds the sizes and can be indexed, empty where there is none.
        shared: Whether the variable is used elsewhere too, so that ``elements`` must stay as they are.
        form: How the argument would be written anew: braces, a call of ``NDRange``, or a tuple.
    """

    whole: Span
    elements: tuple[Span, ...]
    form: Literal["braces", "ndrange", "tuple"]
    name: str = ""
    shared: bool = False

    @property
    def absent(self) -> bool:
        """True when the runtime chooses."""
        return not self.elements and not self.name


@dataclass(frozen=True, slots=True)
class Site:
    """One launch of a kernel in a host program.

    Attributes:
        path: The host program.
        text: Its text.
        language: What it is written in.
        call: The whole call.
        global_size: None where it could not be read.
        local_size: Likewise.
        arguments: Texts of the kernel's arguments by index, where the program shows them.
        options: The build options as written, where one place states them.
        reason: Why it cannot be edited, empty where it can.
    """

    path: Path
    text: str
    language: Language
    call: Span
    global_size: Sizes | None = None
    local_size: Sizes | None = None
    arguments: dict[int, str] = field(default_factory=dict)
    options: Span | None = None
    reason: str = ""

    @property
    def place(self) -> str:
        """File and line, for people."""
        return f"{self.path.name}:{self.text.count(chr(10), 0, self.call.start) + 1}"


@dataclass(frozen=True, slots=True)
class Search:
    """What a search of a workspace found.

    Attributes:
        sites: The launches.
        incomplete: Why there may be others, empty where everything was read.
    """

    sites: tuple[Site, ...]
    incomplete: str = ""
