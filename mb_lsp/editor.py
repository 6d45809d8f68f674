"""What the server asks of the client, each only in the way that this client announced."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

# A client that has not answered by then never will; nothing is lost if it does later.
ANSWER_SECONDS = 10.0
REPORT_SECONDS = 0.5


class Editor:
    """The client; used from the event loop only.

    Args:
        ls: The server, initialized.
    """

    def __init__(self, ls: LanguageServer) -> None:
        self._ls = ls
        self._tasks: set[asyncio.Task[None]] = set()

    def can(self, capability: str) -> bool:
        """Tell whether the client announced a capability, by its dotted name."""
        return bool(get_capability(self._ls.client_capabilities, capability, False))

    @property
    def resolves_edits(self) -> bool:
        """Whether the client asks for an action's edit when the user picks it."""
        support = get_capability(
            self._ls.client_capabilities, "text_document.code_action.resolve_support.properties", ()
        )
        return "edit" in (support or ())

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show one sentence."""
        self._ls.window_show_message(types.ShowMessageParams(type=kind, message=f"ModelBlaster: {message}"))

    def warn(self, message: str) -> None:
        """Show one sentence about something that did not work."""
        self.tell(message, types.MessageType.Warning)

    def refresh(self) -> None:
        """Have lenses asked for again."""
        if self.can("workspace.code_lens.refresh_support"):
            self._ls.workspace_code_lens_refresh(None)

    def publish(self, uri: str, version: int | None, diagnostics: Sequence[types.Diagnostic]) -> None:
        """Replace the diagnostics of a document."""
        self._ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=diagnostics)
        )

    async def show(self, path: Path) -> None:
        """Open a file beside the user's, or name it where the client opens none."""
        shown = False
        if self.can("window.show_document.support"):
            params = types.ShowDocumentParams(uri=path.as_uri(), take_focus=True)
            try:
                answer = await asyncio.wait_for(self._ls.window_show_document_async(params), ANSWER_SECONDS)
                shown = answer.success
            except (JsonRpcException, TimeoutError):
                shown = False
        if not shown:
            self.tell(f"see {path}")

    async def apply(self, edit: types.WorkspaceEdit, label: str) -> bool:
        """Have the client apply an edit.

        Returns:
            What the client answered, which only the document's next text confirms.
        """
        params = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        try:
            return (await self._ls.workspace_apply_edit_async(params)).applied
        except JsonRpcException:
            return False

    def progress(self, title: str, token: str) -> Reporter:
        """Begin work-done progress, which shows nothing where the client has none."""
        reporter = Reporter(self._ls if self.can("window.work_done_progress") else None, token)
        self.spawn(reporter.begin(title))
        return reporter

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something that waits for the client, without waiting for it here."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def workspace_edit(
        self, changes: Mapping[str, tuple[int | None, Sequence[types.TextEdit]]]
    ) -> types.WorkspaceEdit:
        """Make an edit of documents by URI, each with its version; versioned only where that is announced."""
        if not self.can("workspace.workspace_edit.document_changes"):
            return types.WorkspaceEdit(changes={uri: list(edits) for uri, (_, edits) in changes.items()})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(
                    text_document=types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version),
                    edits=list(edits),
                )
                for uri, (version, edits) in changes.items()
            ]
        )


class Reporter:
    """Work-done progress of one job: monotone, at most twice a second, the last report never lost.

    Args:
        ls: The server, None to report nothing.
        token: The progress token.
    """

    def __init__(self, ls: LanguageServer | None, token: str) -> None:
        self._ls = ls
        self._token = token
        self._begun = False
        self._sent = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._percentage = 0
        self._message = "starting"

    async def begin(self, title: str) -> None:
        """Ask the client for progress; a client that refuses sees none."""
        if self._ls is None:
            return
        try:
            await asyncio.wait_for(self._ls.work_done_progress.create_async(self._token), ANSWER_SECONDS)
        except (JsonRpcException, TimeoutError):
            self._ls = None
        if self._ls is None:
            return
        value = types.WorkDoneProgressBegin(
            title=title, cancellable=True, percentage=0, message=self._words()
        )
        self._ls.work_done_progress.begin(self._token, value)
        self._begun = True
        self._sent = asyncio.get_running_loop().time()

    def report(self, percentage: int, message: str) -> None:
        """Report, now or when half a second is over since the last report."""
        self._percentage = max(self._percentage, min(percentage, 100))
        self._message = message
        if self._begun and self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_at(max(self._sent + REPORT_SECONDS, loop.time()), self._send)

    def end(self, message: str) -> None:
        """End the progress and forget its token, which pygls would keep."""
        ls, self._ls = self._ls, None
        if self._waiting is not None:
            self._waiting.cancel()
        if ls is not None and self._begun:
            ls.work_done_progress.end(self._token, types.WorkDoneProgressEnd(message=message))
            ls.work_done_progress.tokens.pop(self._token, None)

    def _send(self) -> None:
        self._waiting = None
        self._sent = asyncio.get_running_loop().time()
        if self._ls is not None:
            value = types.WorkDoneProgressReport(percentage=self._percentage, message=self._words())
            self._ls.work_done_progress.report(self._token, value)

    def _words(self) -> str:
        return f"{self._percentage}% {self._message}"
