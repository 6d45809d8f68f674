"""Code actions: what can be done with a kernel now, answered from what is already known.

An action that edits carries a Pick as its data and gets its edit when the user picks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from lsprotocol import types

from mb_agent.events import Failed
from mb_lsp.annotate import verified
from mb_lsp.shelf import Job
from mb_lsp.standing import Standing
from mb_targets.model import Kernel

KIND = "refactor.rewrite.modelblaster"
FIX = "quickfix.modelblaster"


class Pick(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which edit an action stands for, as it travels through the client.

    Attributes:
        make: ``apply`` an offer, write the ``launch`` as a comment, or insert the ``answer`` to a question.
    """

    make: Literal["apply", "launch", "answer"]
    uri: str
    kernel: str
    identity: str
    job: str = ""
    offer: int = 0


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one argument of every command; each reads what it needs."""

    uri: str = ""
    kernel: str = ""
    identity: str = ""
    job: str = ""
    offer: int = 0


def read_ask(data: object) -> Ask | None:
    """Read a command's or a lens's argument; None when it is not ours."""
    try:
        return msgspec.convert(data, Ask)
    except msgspec.ValidationError:
        return None


def read_pick(data: object) -> Pick | None:
    """Read an action's data; None when it is not ours."""
    try:
        return msgspec.convert(data, Pick)
    except msgspec.ValidationError:
        return None


def command(title: str, name: str, ask: Ask) -> types.Command:
    """Make a command that asks this server for something."""
    return types.Command(title=title, command=f"modelblaster.{name}", arguments=[msgspec.to_builtins(ask)])


def wanted(only: Sequence[str] | None, kind: str) -> bool:
    """Tell whether a client that asked for only some kinds of action wants this one."""
    return not only or any(kind == each or kind.startswith(f"{each}.") for each in only)


def listed(uri: str, kernel: Kernel, standing: Standing, trusted: bool) -> Iterator[types.CodeAction]:
    """List the actions of one kernel, the most useful first."""
    job, name = standing.job, kernel.name
    here = Ask(uri=uri, kernel=name, identity=kernel.identity)
    if job is not None:
        yield from _of_job(uri, kernel, standing, job)
    if standing.kind != "running":
        word = "Optimize this kernel" if trusted else "Trust this workspace and optimize"
        yield _command(f"{word} `{name}`", "optimize" if trusted else "trust", here)
    pick = Pick("launch", uri, name, kernel.identity, job.id if job else "")
    yield _edit(f"Write the launch of `{name}` as a comment", KIND, pick)


def _of_job(uri: str, kernel: Kernel, standing: Standing, job: Job) -> Iterator[types.CodeAction]:
    name = kernel.name
    of_job = Ask(uri=uri, kernel=name, identity=kernel.identity, job=job.id)
    if standing.kind == "running":
        yield _command(f"Cancel optimizing `{name}`", "cancel", of_job)
        return
    if standing.kind == "failed" and isinstance(job.log.end, Failed) and job.log.end.comment:
        pick = Pick("answer", uri, name, kernel.identity, job.id)
        yield _edit(f"Insert a `// mb:` comment to fill in for `{name}`", FIX, pick)
    if standing.kind == "interrupted":
        yield _command(f"Resume optimizing `{name}`", "resume", of_job)
    if standing.kind in ("ready", "interrupted"):
        yield from _offers(uri, kernel, job)
    if job.log.offers:
        offer = standing.offer if standing.kind == "applied" else 0
        shown = msgspec.structs.replace(of_job, offer=offer)
        if standing.kind != "applied":
            yield _command(f"Show diff of optimized `{name}`", "showDiff", shown)
        yield _command(f"Show evidence for optimized `{name}`", "showEvidence", shown)
    if job.log.offers or standing.kind == "interrupted":
        yield _command(f"Discard result for `{name}`", "discard", of_job)


def _offers(uri: str, kernel: Kernel, job: Job) -> Iterator[types.CodeAction]:
    for index, offer in enumerate(job.log.offers):
        also = " and its launch" if offer.changes_launch else ""
        gain = f"{offer.measurement.speedup}, {verified(job)}"
        pick = Pick("apply", uri, kernel.name, kernel.identity, job.id, index)
        action = _edit(f"Apply optimized `{kernel.name}`{also} ({gain})", KIND, pick)
        action.is_preferred = index == 0
        yield action


def _command(title: str, name: str, ask: Ask) -> types.CodeAction:
    return types.CodeAction(title=title, kind=KIND, command=command(title, name, ask))


def _edit(title: str, kind: str, pick: Pick) -> types.CodeAction:
    return types.CodeAction(title=title, kind=kind, data=msgspec.to_builtins(pick))
