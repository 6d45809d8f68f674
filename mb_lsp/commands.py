"""What each command and each picked action does.

A command that cannot do its work raises CommandError, whose message the user reads.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from lsprotocol import types

from mb_agent.diff import unified
from mb_agent.events import Budget, Offer, Request
from mb_lsp import explain, review, shelf, trust
from mb_lsp.actions import Ask, Pick, read_pick
from mb_lsp.documents import Document, Placed
from mb_lsp.edits import Changes, changes, insertion
from mb_lsp.problems import CommandError
from mb_lsp.review import Refusal
from mb_lsp.session import Session
from mb_lsp.shelf import Job
from mb_targets import registry
from mb_targets.errors import TargetError
from mb_targets.model import DocumentEdits
from mb_targets.protocol import Question


def optimize(session: Session, ask: Ask) -> dict[str, str]:
    """Start optimizing a kernel, or find the job that already does; answers with its id at once."""
    document, placed = _placed(session, ask)
    if not session.trusted(document):
        raise CommandError(
            f"this workspace is not trusted, so nothing of it is run; use the code action"
            f' "Trust this workspace and optimize `{placed.kernel.name}`"'
        )
    settings = session.settings
    request = Request(
        job=shelf.new_id(placed.kernel.name),
        path=str(document.path or ""),
        text=document.text,
        kernel=placed.kernel,
        offset=placed.kernel.offset,
        budget=Budget(seconds=settings.budget_seconds, candidates=settings.budget_candidates),
        device=settings.device,
        knowledge=str(settings.knowledge),
        precision=settings.precision,
    )
    try:
        return {"job": session.jobs.start(request, document.uri).id}
    except OSError as error:
        raise CommandError(f"cannot write {settings.jobs}: {error.strerror}") from error


def trust_and_optimize(session: Session, ask: Ask) -> dict[str, str] | None:
    """Trust the workspace of a document from now on; then optimize the kernel, if one is named."""
    document = _document(session, ask.uri)
    folder = trust.workspace_of(document.path, session.roots)
    if folder is not None:
        try:
            session.trust.trust(folder)
        except OSError as error:
            raise CommandError(f"cannot write {session.settings.data}: {error.strerror}") from error
    session.redraw()
    return optimize(session, ask) if ask.kernel else None


def resume(session: Session, ask: Ask) -> dict[str, str]:
    """Go on with a job that was killed."""
    job = _job(session, ask)
    document = session.documents.get(ask.uri or job.uri)
    if document is None or not session.trusted(document):
        raise CommandError("open the job's document, in a workspace that you trust, to resume it")
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
    offer = _offer(job, ask.offer)
    edit = session.editor.workspace_edit(_offered(session, job, offer, ask.uri))
    return {"applied": await session.editor.apply(edit, f"Optimize {job.name}")}


async def show_diff(session: Session, ask: Ask) -> None:
    """Open the diff of an offer, for the text as it is now where it still fits."""
    job = _job(session, ask)
    offer = _offer(job, ask.offer)
    await session.editor.show(_written(job, f"{job.name}.diff", _diff(session, job, offer, ask.uri)))


async def show_evidence(session: Session, ask: Ask) -> None:
    """Open the evidence of an offer."""
    job = _job(session, ask)
    text = explain.evidence(job, _offer(job, ask.offer))
    await session.editor.show(_written(job, f"{job.name}.md", text))


def completed(session: Session, listed: list[types.CodeAction]) -> list[types.CodeAction]:
    """Give actions their edits at once, for a client that will not ask for them when they are picked."""
    if session.editor.resolves_edits:
        return listed
    for action in listed:
        pick = read_pick(action.data)
        if pick is not None:
            try:
                action.edit = session.editor.workspace_edit(_picked(session, pick))
            except CommandError as error:
                action.disabled = types.CodeActionDisabled(reason=str(error))
    return [action for action in listed if action.disabled is None]


def resolve(session: Session, action: types.CodeAction, pick: Pick) -> types.CodeAction:
    """Give a picked action its edit; it stays without one, and the user is told why, when it does not fit."""
    try:
        action.edit = session.editor.workspace_edit(_picked(session, pick))
    except CommandError as error:
        session.editor.warn(str(error))
    return action


def _picked(session: Session, pick: Pick) -> Changes:
    if pick.make == "apply":
        job = _job(session, Ask(job=pick.job))
        return _offered(session, job, _offer(job, pick.offer), pick.uri)
    document, placed = _placed(session, Ask(uri=pick.uri, kernel=pick.kernel, identity=pick.identity))
    asked = session.jobs.get(pick.job)
    comment = _answer(asked) if pick.make == "answer" else _launch(document, placed, asked)
    return {document.uri: (document.version, [insertion(document, placed.start, comment)])}


def _offered(session: Session, job: Job, offer: Offer, uri: str) -> Changes:
    document = _document(session, uri or job.uri)
    edits = _edits(job, offer, document)
    result = edits if isinstance(edits, Refusal) else changes(session.documents, document, edits)
    if isinstance(result, Refusal):
        raise CommandError(result.reason)
    return result


def _edits(job: Job, offer: Offer, document: Document) -> list[DocumentEdits] | Refusal:
    try:
        result = review.edits(job, offer, document)
    except (OSError, msgspec.MsgspecError):
        raise CommandError(f"the record of this job cannot be read; it is in {job.folder}") from None
    return result if isinstance(result, Refusal) else list(result)


def _diff(session: Session, job: Job, offer: Offer, uri: str) -> str:
    document = session.documents.get(uri or job.uri)
    edits = _edits(job, offer, document) if document else Refusal("its document is not open")
    if isinstance(edits, Refusal):
        if not offer.diff:
            raise CommandError(edits.reason)
        return f"# For the text as it was when it was measured: {edits.reason}.\n{offer.diff}"
    assert document is not None
    return unified(edits, str(review.path_of(document, job)), document.text)


def _launch(document: Document, placed: Placed, job: Job | None) -> str:
    """Give the launch as a comment: as it was resolved when the kernel last ran, else as it is inferred."""
    if job is not None and job.identity == placed.kernel.identity and job.log.started:
        return job.log.started.launch_comment
    target = registry.load(placed.kernel.target)
    try:
        found = target.infer_launch(placed.kernel, document.path)
    except TargetError as error:
        raise CommandError(str(error)) from error
    return found.comment if isinstance(found, Question) else target.describe_launch(placed.kernel, found)


def _answer(job: Job | None) -> str:
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
