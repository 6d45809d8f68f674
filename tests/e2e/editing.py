"""The editor's side of the end-to-end tests: open documents, and what an editor does with answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Union

import pytest_lsp
from lsprotocol import types as t
from pytest_lsp import LanguageClient

from mb_lsp.lines import Lines

WAIT_SECONDS = 60.0


def vscode() -> t.ClientCapabilities:
    """The capabilities that count here, as VS Code announces them."""
    return t.ClientCapabilities(
        workspace=t.WorkspaceClientCapabilities(
            apply_edit=True,
            workspace_edit=t.WorkspaceEditClientCapabilities(document_changes=True),
            code_lens=t.CodeLensWorkspaceClientCapabilities(refresh_support=True),
            execute_command=t.ExecuteCommandClientCapabilities(),
        ),
        text_document=t.TextDocumentClientCapabilities(
            code_action=t.CodeActionClientCapabilities(
                code_action_literal_support=t.ClientCodeActionLiteralOptions(
                    code_action_kind=t.ClientCodeActionKindOptions(value_set=[""])
                ),
                data_support=True,
                resolve_support=t.ClientCodeActionResolveOptions(properties=["edit"]),
                is_preferred_support=True,
            ),
            publish_diagnostics=t.PublishDiagnosticsClientCapabilities(data_support=True),
        ),
        window=t.WindowClientCapabilities(
            work_done_progress=True, show_document=t.ShowDocumentClientCapabilities(support=True)
        ),
        general=t.GeneralClientCapabilities(position_encodings=[t.PositionEncodingKind.Utf16]),
    )


def plain() -> t.ClientCapabilities:
    """A client that takes edits from the server, and asks for none when an action is picked."""
    return t.ClientCapabilities(workspace=t.WorkspaceClientCapabilities(apply_edit=True))


def bare() -> t.ClientCapabilities:
    """A client that announces nothing."""
    return t.ClientCapabilities()


PROFILES = {"vscode": vscode, "plain": plain, "bare": bare}


def make_client() -> LanguageClient:
    """Make a client that tells actions from commands: lsprotocol takes an action with a command for one."""
    client = pytest_lsp.make_test_lsp_client()
    converter = client.protocol._converter
    converter.register_structure_hook(
        Union[t.Command, t.CodeAction],  # noqa: UP007  the hook is looked up by this very object
        lambda o, _: converter.structure(o, t.Command if isinstance(o.get("command"), str) else t.CodeAction),
    )
    return client


class Window:
    """One editor window.

    Attributes:
        texts: What the open documents hold, by URI.
        edits: Every edit that the server asked for.
        refreshed: How often it asked for lenses to be drawn again.
    """

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.edits: list[t.WorkspaceEdit] = []
        self.refreshed = 0

        @client.feature(t.WORKSPACE_APPLY_EDIT)
        def apply_edit(params: t.ApplyWorkspaceEditParams) -> t.ApplyWorkspaceEditResult:
            self.apply(params.edit)
            return t.ApplyWorkspaceEditResult(applied=True)

        @client.feature(t.WORKSPACE_CODE_LENS_REFRESH)
        def refresh(*_: object) -> None:
            self.refreshed += 1

    def open(self, name: str, text: str, language: str = "opencl", saved: bool = True) -> str:
        """Open a document, written to disk first unless it is unsaved."""
        path = self.folder / name
        uri = path.as_uri() if saved else f"untitled:{name}"
        if saved:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        self.texts[uri], self.versions[uri] = text, 1
        item = t.TextDocumentItem(uri=uri, language_id=language, version=1, text=text)
        self.client.text_document_did_open(t.DidOpenTextDocumentParams(text_document=item))
        return uri

    def change(self, uri: str, text: str) -> None:
        """Type: the document has another text now."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.client.text_document_did_change(
            t.DidChangeTextDocumentParams(
                text_document=t.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
                content_changes=[t.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )

    def close(self, uri: str) -> None:
        """Close a document."""
        del self.texts[uri]
        self.client.text_document_did_close(
            t.DidCloseTextDocumentParams(text_document=t.TextDocumentIdentifier(uri=uri))
        )

    def apply(self, edit: t.WorkspaceEdit) -> None:
        """Do an edit as an editor does it."""
        self.edits.append(edit)
        for uri, version, edits in _edits(edit):
            assert version in (None, self.versions[uri])
            self.change(uri, edited(self.texts[uri], edits))

    async def lenses(self, uri: str) -> list[t.CodeLens]:
        """Ask for the lenses, with their titles."""
        params = t.CodeLensParams(text_document=t.TextDocumentIdentifier(uri=uri))
        found = await self.client.text_document_code_lens_async(params)
        return [await self.client.code_lens_resolve_async(lens) for lens in found or []]

    async def titles(self, uri: str) -> list[str]:
        """Give the lenses' titles."""
        return [lens.command.title for lens in await self.lenses(uri) if lens.command]

    async def hover(self, uri: str, line: int) -> str | None:
        """Rest the pointer on a line."""
        position = t.Position(line=line, character=2)
        params = t.HoverParams(text_document=t.TextDocumentIdentifier(uri=uri), position=position)
        hover = await self.client.text_document_hover_async(params)
        return hover.contents.value if hover and isinstance(hover.contents, t.MarkupContent) else None

    async def actions(self, uri: str, line: int, only: Sequence[str] | None = None) -> list[t.CodeAction]:
        """Ask what can be done on a line."""
        at = t.Position(line=line, character=0)
        params = t.CodeActionParams(
            text_document=t.TextDocumentIdentifier(uri=uri),
            range=t.Range(start=at, end=at),
            context=t.CodeActionContext(diagnostics=[], only=only),
        )
        found = await self.client.text_document_code_action_async(params)
        return [action for action in found or [] if isinstance(action, t.CodeAction)]

    async def action(self, uri: str, line: int, title: str) -> t.CodeAction:
        """Find the action whose title begins so."""
        found = await self.actions(uri, line)
        return next(a for a in found if a.title.startswith(title))

    async def pick(self, action: t.CodeAction) -> Any:
        """Pick an action: its edit is made, then its command run."""
        can_resolve = self.client.capabilities and self.client.capabilities.text_document
        if action.edit is None and can_resolve:
            action = await self.client.code_action_resolve_async(action)
        if action.edit is not None:
            self.apply(action.edit)
        return await self.run(action.command) if action.command else None

    async def run(self, command: t.Command) -> Any:
        """Run a command."""
        params = t.ExecuteCommandParams(command=command.command, arguments=command.arguments)
        return await self.client.workspace_execute_command_async(params)

    async def optimize(self, uri: str, line: int) -> str:
        """Pick "Optimize" and give the job's id."""
        answer = await self.pick(await self.action(uri, line, "Optimize this kernel"))
        return str(answer["job"])

    async def said(self, words: str, seconds: float = WAIT_SECONDS) -> str:
        """Wait for a message to the user that holds these words."""

        def found() -> str:
            return next((m.message for m in self.client.messages if words in m.message), "")

        return str(await until(found, seconds))


async def until(condition: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    """Wait until a condition holds, and give what it gave."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.02)
    return value


def edited(text: str, edits: Sequence[t.TextEdit]) -> str:
    """Make edits, all of which are given in positions of the text before."""
    lines = Lines(text, "utf-16")
    spans = [
        (lines.offset(e.range.start.line, e.range.start.character),
         lines.offset(e.range.end.line, e.range.end.character), e.new_text)
        for e in edits
    ]  # fmt: skip
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edits(edit: t.WorkspaceEdit) -> list[tuple[str, int | None, list[t.TextEdit]]]:
    if edit.changes is not None:
        return [(uri, None, list(edits)) for uri, edits in edit.changes.items()]
    return [
        (
            each.text_document.uri,
            each.text_document.version,
            [e for e in each.edits if isinstance(e, t.TextEdit)],
        )
        for each in edit.document_changes or []
        if isinstance(each, t.TextDocumentEdit)
    ]
