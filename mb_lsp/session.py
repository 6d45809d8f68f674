"""One client's session: documents, jobs, trust and knowledge together, and the answers they give."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
from lsprotocol import types

from mb_lsp import actions, annotate, encoded, trust
from mb_lsp.annotate import Recalled
from mb_lsp.documents import Document, Documents, Placed
from mb_lsp.editor import Editor
from mb_lsp.edits import ranged
from mb_lsp.jobs import Jobs
from mb_lsp.launches import described
from mb_lsp.memory import Knowledge
from mb_lsp.settings import Settings
from mb_lsp.shelf import Job
from mb_lsp.standing import Standing, standing

# Hints follow typing after this; while jobs run, lenses are redrawn at most this often.
SETTLE_SECONDS = 0.3
REDRAW_SECONDS = 2.0
# Kernels of a document for which similar ones are looked up ahead; for others a hover does it, for the next.
MOST_WARMED = 64


class Session:
    """What the server knows of one client.

    Args:
        editor: The client.
        settings: Its settings.
        documents: Its documents, none open yet.
        roots: Its workspace folders.
        command: The command that runs a job.
    """

    def __init__(
        self,
        editor: Editor,
        settings: Settings,
        documents: Documents,
        roots: Sequence[Path],
        command: Sequence[str],
    ) -> None:
        self.editor = editor
        self.settings = settings
        self.documents = documents
        self.roots = list(roots)
        self.trust = trust.Trust(settings.data)
        self.knowledge = Knowledge(settings.knowledge, editor.warn)
        self.jobs = Jobs(settings.jobs, editor, command, self._job_changed, self._job_ended)
        # By document and kernel: the launch as the user's files stated it when they were last looked at.
        self.launches: dict[tuple[str, str], str] = {}
        self._marked: dict[str, list[str]] = {}
        self._settling: dict[str, asyncio.TimerHandle] = {}
        self._redrawing: asyncio.TimerHandle | None = None
        self._redrawn = 0.0

    def opened(self, document: Document) -> None:
        """Look at a document that was opened or changed, when typing has paused."""
        pending = self._settling.pop(document.uri, None)
        if pending is not None:
            pending.cancel()
        loop = asyncio.get_running_loop()
        self._settling[document.uri] = loop.call_later(SETTLE_SECONDS, self._settle, document.uri)

    def closed(self, uri: str) -> None:
        """Forget a document; its jobs go on."""
        self.documents.close(uri)
        pending = self._settling.pop(uri, None)
        if pending is not None:
            pending.cancel()
        if self._marked.pop(uri, None):
            self.editor.publish(uri, None, [])

    def lenses(self, uri: str) -> msgspec.Raw:
        """Give the place of each kernel's lens, encoded; titles come when asked for."""
        document = self.documents.get(uri)
        if document is None or not self.settings.code_lens:
            return msgspec.Raw(b"[]")
        position = document.lines.position
        return encoded.lenses(
            (position(each.start), actions.Ask(uri, each.name, each.identity)) for each in document.outline
        )

    def lens(self, lens: types.CodeLens) -> types.CodeLens:
        """Give a lens its title and command; an unknown one is returned as it is."""
        ask = actions.read_ask(lens.data)
        document = self.documents.get(ask.uri) if ask else None
        placed = document.find(ask.kernel, ask.identity) if ask and document else None
        if document is None or placed is None:
            return lens
        stands = self.standing(document, placed)
        shown = annotate.lens(stands, self._memory(placed), self.trusted(document))
        lens.command = actions.command(
            shown.title,
            shown.command,
            actions.Ask(
                uri=document.uri,
                kernel=placed.kernel.name,
                identity=placed.kernel.identity,
                job=stands.job.id if stands.job else "",
                offer=stands.offer,
            ),
        )
        return lens

    def hover(self, uri: str, position: types.Position) -> types.Hover | None:
        """Say what is known of the kernel at a position; None when nothing is."""
        document = self.documents.get(uri)
        if document is None or not self.settings.hover:
            return None
        at = document.lines.offset(position.line, position.character)
        for placed in document.touching(at, at):
            asyncio.get_running_loop().call_soon(self.knowledge.warm, placed.kernel)
            text = annotate.hover(placed.kernel.name, self.standing(document, placed), self._memory(placed))
            if text is not None:
                content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=text)
                return types.Hover(contents=content, range=ranged(document.lines, placed.start, placed.end))
        return None

    def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """List what can be done with the kernels that a range touches."""
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return []
        start = document.lines.offset(params.range.start.line, params.range.start.character)
        end = document.lines.offset(params.range.end.line, params.range.end.character)
        trusted = self.trusted(document)
        return [
            action
            for placed in document.touching(start, end)
            for action in actions.listed(
                document.uri, placed.kernel, self.standing(document, placed), trusted
            )
            if actions.wanted(params.context.only, str(action.kind))
        ]

    def standing(self, document: Document, placed: Placed) -> Standing:
        """Work out where a kernel stands."""
        launch = self.launches.get((document.uri, placed.kernel.name), "")
        return standing(placed.kernel, self.jobs.of(document.uri, placed.kernel), launch)

    def trusted(self, document: Document) -> bool:
        """Tell whether the user trusts the workspace of a document."""
        return self.trusted_path(document.path)

    def trusted_path(self, path: Path | None) -> bool:
        """Tell whether the user trusts the workspace of a file; None for unsaved text."""
        folder = trust.workspace_of(path, self.roots)
        return folder is None or self.trust.trusted(folder)

    def redraw(self) -> None:
        """Have lenses drawn again and marks set, soon, at most every two seconds."""
        if self._redrawing is None:
            loop = asyncio.get_running_loop()
            wait = max(self._redrawn + REDRAW_SECONDS, loop.time())
            self._redrawing = loop.call_at(wait, self._redraw)

    def changed(self) -> None:
        """Show a new state of some kernel everywhere, at once."""
        for document in self.documents:
            self._mark(document)
        if self._redrawing is not None:
            self._redrawing.cancel()
        self._redraw()

    def _redraw(self) -> None:
        self._redrawing = None
        self._redrawn = asyncio.get_running_loop().time()
        self.editor.refresh()

    def _memory(self, placed: Placed) -> Recalled:
        return self.knowledge.of(placed.kernel)

    def _job_changed(self, job: Job) -> None:
        self.redraw()

    def _job_ended(self, job: Job) -> None:
        """Tell the user, once, and show the new state everywhere."""
        self.editor.tell(annotate.outcome_words(job))
        self.changed()

    def _settle(self, uri: str) -> None:
        self._settling.pop(uri, None)
        document = self.documents.get(uri)
        if document is None:
            return
        for job in self.jobs.running():
            if job.uri == uri:
                placed = document.find(job.name, job.identity)
                self.jobs.edited(job, placed is None or placed.kernel.identity != job.identity)
        self._mark(document)
        self._warm(document, 0)
        self.editor.spawn(self._look_at_launches(document))

    async def _look_at_launches(self, document: Document) -> None:
        """Find out whether kernels with results are still launched as they were measured."""
        for placed in document.kernels:
            jobs = self.jobs.of(document.uri, placed.kernel)
            if not any(job.identity == placed.kernel.identity and job.log.offers for job in jobs):
                continue
            now = await asyncio.to_thread(described, placed.kernel, document.path)
            if self.documents.get(document.uri) is not document:
                return
            before = self.standing(document, placed)
            self.launches[document.uri, placed.kernel.name] = now
            if self.standing(document, placed) != before:
                self.changed()

    def _warm(self, document: Document, index: int) -> None:
        """Look for kernels similar to each of a document's, one at a turn of the loop."""
        if self.documents.get(document.uri) is not document:
            return
        kernels = document.kernels[:MOST_WARMED]
        while index < len(kernels):
            index += 1
            if self.knowledge.warm(kernels[index - 1].kernel):
                asyncio.get_running_loop().call_later(0.02, self._warm, document, index)
                return

    def _mark(self, document: Document) -> None:
        """Publish hints, if they are not those that are shown."""
        if not self.settings.diagnostics:
            return
        marks = [mark for placed in document.kernels if (mark := self._hint(document, placed))]
        shown = [f"{mark.range} {mark.message}" for mark in marks]
        if shown != self._marked.get(document.uri, []):
            self._marked[document.uri] = shown
            self.editor.publish(document.uri, document.version, marks)

    def _hint(self, document: Document, placed: Placed) -> types.Diagnostic | None:
        stands = self.standing(document, placed)
        text = annotate.hint(placed.kernel.name, stands)
        if not text or stands.job is None:
            return None
        first = document.lines.line_at(placed.start)
        end = min(document.lines.end(first), placed.end)
        return types.Diagnostic(
            range=ranged(document.lines, placed.start, end),
            message=text,
            severity=types.DiagnosticSeverity.Hint,
            source="modelblaster",
            data={"job": stands.job.id},
        )
