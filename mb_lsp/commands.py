"""What each command and each picked action does.

A command that cannot do its work raises CommandError, whose message the user reads.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from lsprotocol import types

from mb_agent.diff import unified
from mb_agent.events import Budget, Offer, Request
from mb_lsp import explain, processes, review, shelf, trust
from mb_lsp.actions import Ask, Pick, command, read_pick
from mb_lsp.documents import Document, Placed
from mb_lsp.edits import Changes, changes, insertion
from mb_lsp.launches import described
from mb_lsp.problems import CommandError
from mb_lsp.review import Refusal
from mb_lsp.session import Session
from mb_lsp.shelf import Job
from mb_lsp.standing import same_launch
from mb_targets import registry
from mb_targets.errors import TargetError
from mb_targets.model import DocumentEdits
from mb_targets.protocol import Question


async def optimize(session: Session, ask: Ask) -> dict[str, str]:
    """Start optimizing a kernel, or find the job that already does; answers with its id at once."""
    document, placed = _placed(session, ask)
    if not session.trusted(document):
        raise CommandError(
            f"this workspace is not trusted, so nothing of it is run; use the code action"
            f' "Trust this workspace and optimize `{placed.kernel.name}`"'
        )
    processes.require_platform()
    if running := session.jobs.runs(document.uri, placed.kernel):
        return {"job": running.id}
    settings = session.settings
    job = shelf.new_id(placed.kernel.name)
    request = Request(
        job=job,
        path=str(document.path or shelf.private_path(settings.jobs / job, placed.kernel.language)),
        text=document.text,
        kernel=placed.kernel,
        offset=placed.kernel.offset,
        budget=Budget(seconds=settings.budget_seconds, candidates=settings.budget_candidates),
        device=settings.device,
        knowledge=str(settings.knowledge),
        precision=settings.precision,
    )
    launch = await asyncio.to_thread(described, placed.kernel, document.path)
    session.launches[document.uri, placed.kernel.name] = launch
    try:
        return {"job": session.jobs.start(request, document.uri, launch).id}
    except OSError as error:
        raise CommandError(f"cannot write {settings.jobs}: {error.strerror}") from error


async def trust_and_optimize(session: Session, ask: Ask) -> dict[str, str] | None:
    """Trust the workspace of a document from now on; then optimize the kernel, if one is named."""
    document = _document(session, ask.uri)
    if ask.kernel:
        # Whatever can be refused is refused before anything is trusted.
        _placed(session, ask)
        processes.require_platform()
    folder = trust.workspace_of(document.path, session.roots)
    if folder is not None:
        try:
            session.trust.trust(folder)
        except OSError as error:
            raise CommandError(f"cannot write {session.settings.data}: {error.strerror}") from error
    session.redraw()
    return await optimize(session, ask) if ask.kernel else None


def resume(session: Session, ask: Ask) -> dict[str, str]:
    """Go on with a job that was killed."""
    job = _job(session, ask)
    document = session.documents.get(ask.uri or job.uri)
    own = job.path and not Path(job.path).is_relative_to(job.folder)
    if (
        document is None
        or not session.trusted(document)
        or (own and not session.trusted_path(Path(job.path)))
    ):
        raise CommandError("open the job's document, in a workspace that you trust, to resume it")
    processes.require_platform()
    job.uri = document.uri
    session.jobs.resume(job)
    return {"job": job.id}


def cancel(session: Session, ask: Ask) -> None:
    """Kill a running job."""
    session.jobs.cancel(_job(session, ask))


def discard(session: Session, ask: Ask) -> None:
    """Forget a result."""
    session.jobs.discard(_job(session, ask))
    session.changed()


async def apply(session: Session, ask: Ask) -> dict[str, bool]:
    """Have the client apply an offer; whether it did shows in the document's next text."""
    job = _job(session, ask)
    pick = Pick("apply", ask.uri or job.uri, job.name, job.identity, job.id, ask.offer)
    return await _applied(session, pick, f"Optimize {job.name}")


async def write_launch(session: Session, ask: Ask) -> dict[str, bool]:
    """Have the client write a kernel's launch as a comment above it."""
    pick = Pick("launch", ask.uri, ask.kernel, ask.identity, ask.job)
    return await _applied(session, pick, f"Launch of {ask.kernel}")


async def show_diff(session: Session, ask: Ask) -> None:
    """Open the diff of an offer, for the text as it is now where it still fits."""
    job = _job(session, ask)
    document = session.documents.get(ask.uri or job.uri)
    text = await asyncio.to_thread(_diff, document, job, _offer(job, ask.offer))
    await session.editor.show(_written(job, f"{job.name}.diff", text))


async def show_evidence(session: Session, ask: Ask) -> None:
    """Open the evidence of an offer."""
    job = _job(session, ask)
    text = explain.evidence(job, _offer(job, ask.offer))
    await session.editor.show(_written(job, f"{job.name}.md", text))


async def completed(session: Session, listed: list[types.CodeAction]) -> list[types.CodeAction]:
    """Make actions whole for a client that will not ask for their edits: by commands, if it can."""
    if session.editor.resolves_edits:
        return listed
    for action in listed:
        pick = read_pick(action.data)
        if pick is None:
            continue
        if pick.make != "answer" and session.editor.can("workspace.apply_edit"):
            ask = Ask(pick.uri, pick.kernel, pick.identity, pick.job, pick.offer)
            action.command = command(action.title, "apply" if pick.make == "apply" else "writeLaunch", ask)
            continue
        try:
            action.edit = session.editor.workspace_edit(await _picked(session, pick))
        except CommandError as error:
            action.disabled = types.CodeActionDisabled(reason=str(error))
    return [action for action in listed if action.disabled is None]


async def resolve(session: Session, action: types.CodeAction, pick: Pick) -> types.CodeAction:
    """Give a picked action its edit; it stays without one, and the user is told why, when it does not fit."""
    try:
        action.edit = session.editor.workspace_edit(await _picked(session, pick))
    except CommandError as error:
        session.editor.warn(str(error))
    return action


async def _applied(session: Session, pick: Pick, label: str) -> dict[str, bool]:
    edit = session.editor.workspace_edit(await _picked(session, pick))
    return {"applied": await session.editor.apply(edit, label)}


async def _picked(session: Session, pick: Pick) -> Changes:
    """Work out an edit beside the event loop: host code of the whole workspace may have to be read."""
    document, job = _document(session, pick.uri), session.jobs.get(pick.job)
    if pick.make == "apply":
        found = _job(session, Ask(job=pick.job))
        made = await asyncio.to_thread(_edits, found, _offer(found, pick.offer), document)
        result = made if isinstance(made, Refusal) else changes(session.documents, document, made)
    else:
        _, placed = _placed(session, Ask(uri=pick.uri, kernel=pick.kernel, identity=pick.identity))
        work = _answer if pick.make == "answer" else _launch
        comment = await asyncio.to_thread(work, document, placed, job)
        edit = insertion(document, placed, comment, replace=pick.make == "launch")
        result = {document.uri: (document.version, [edit])}
    if session.documents.get(pick.uri) is not document:
        raise CommandError("the document changed meanwhile; try again")
    if isinstance(result, Refusal):
        raise CommandError(result.reason)
    return result


def _edits(job: Job, offer: Offer, document: Document) -> list[DocumentEdits] | Refusal:
    try:
        result = review.edits(job, offer, document)
    except (OSError, msgspec.MsgspecError):
        raise CommandError(f"the record of this job cannot be read; it is in {job.folder}") from None
    return result if isinstance(result, Refusal) else list(result)


def _diff(document: Document | None, job: Job, offer: Offer) -> str:
    edits = _edits(job, offer, document) if document else Refusal("its document is not open")
    if document is not None and not isinstance(edits, Refusal):
        return unified(edits, str(review.path_of(document, job)), document.text)
    if not offer.diff:
        raise CommandError("there is no diff of this result")
    assert isinstance(edits, Refusal)
    return f"# For the text as it was when it was measured: {edits.reason}.\n{offer.diff}"


def _launch(document: Document, placed: Placed, job: Job | None) -> str:
    """Give the launch as a comment: as it was resolved when the kernel last ran, else as it is inferred."""
    if job is not None and job.identity == placed.kernel.identity and job.log.started:
        now = described(placed.kernel, document.path)
        if same_launch(job, job.asked or now, now):
            return job.log.started.launch_comment
    target = registry.load(placed.kernel.target)
    try:
        found = target.infer_launch(placed.kernel, document.path)
    except TargetError as error:
        raise CommandError(str(error)) from error
    return found.comment if isinstance(found, Question) else target.describe_launch(placed.kernel, found)


def _answer(_document: Document, _placed: Placed, job: Job | None) -> str:
    comment = getattr(job.log.end, "comment", "") if job else ""
    if not comment:
        raise CommandError("this question is no longer open")
    return str(comment)


def _document(session: Session, uri: str) -> Document:
    document = session.documents.get(uri)
    if document is None:
        raise CommandError("the document is not open; open it and try again")
    return document


def _placed(session: Session, ask: Ask) -> tuple[Document, Placed]:
    document = _document(session, ask.uri)
    placed = document.find(ask.kernel, ask.identity)
    if placed is None:
        raise CommandError(f"there is no kernel `{ask.kernel}` in this document")
    return document, placed


def _job(session: Session, ask: Ask) -> Job:
    job = session.jobs.get(ask.job)
    if job is None:
        raise CommandError("there is no such job any more")
    return job


def _offer(job: Job, index: int) -> Offer:
    if not 0 <= index < len(job.log.offers):
        raise CommandError(f"there is no such result for `{job.name}`")
    return job.log.offers[index]


def _written(job: Job, name: str, text: str) -> Path:
    path = job.folder / name
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    return path
