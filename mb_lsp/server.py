"""The language server over stdio: each request is passed to the module that answers it."""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method
from pygls.uris import to_fs_path

from mb_lsp import actions, commands, encoded, processes, settings
from mb_lsp.actions import Ask
from mb_lsp.documents import Change, Documents
from mb_lsp.editor import Editor
from mb_lsp.lines import Encoding
from mb_lsp.problems import CommandError
from mb_lsp.session import Session

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LENS = types.CodeLensOptions(resolve_provider=True)
ACTIONS = types.CodeActionOptions(code_action_kinds=[actions.KIND, actions.FIX], resolve_provider=True)


class Quiet(LanguageServerProtocol):
    """The protocol, without tracebacks: what goes wrong is logged, and the client reads one sentence.

    Every request is answered, a malformed or late one with an error. An answer that is already JSON is
    written as it is.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Read a message; None for a request whose parameters are wrong, which is answered here."""
        try:
            return super().structure_message(data)
        except JsonRpcException:
            if "method" not in data or not isinstance(data.get("id"), int | str):
                raise
            wrong = JsonRpcInvalidParams(f"the parameters of {data['method']} are not what the protocol says")
            self._send_response(data["id"], error=wrong.to_response_error())
            return None

    def handle_message(self, message: Any) -> None:
        """Pass a message on; a request after the shutdown is refused."""
        if message is None:
            return
        if self._shutdown and hasattr(message, "method") and hasattr(message, "id"):
            late = JsonRpcInvalidRequest("the server was shut down")
            self._send_response(message.id, error=late.to_response_error())
            return
        super().handle_message(message)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        """Leave pygls's copy of the text alone: nobody reads it, and it has none of what was never opened."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    def _send_response(
        self, msg_id: int | str, result: object = None, error: types.ResponseError | None = None
    ) -> None:
        if error is None and isinstance(result, msgspec.Raw) and isinstance(self.writer, StdoutWriter):
            self._result_types.pop(msg_id, None)
            self.writer.write(encoded.answer(msg_id, result))
            return
        if error is not None:
            internal = error.code == types.ErrorCodes.InternalError.value
            sentence = "ModelBlaster failed on this request; its log says why" if internal else error.message
            error = types.ResponseError(code=error.code, message=sentence)
        super()._send_response(msg_id, result, error)


class Server(LanguageServer):
    """ModelBlaster's server.

    Attributes:
        job_command: The command that runs a job.
        problems: Sentences about bad settings, told when the client is ready.
        session: The client's session; set when it initializes.
    """

    session: Session

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(
            "modelblaster",
            _version(),
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            protocol_cls=Quiet,
        )
        self.job_command = tuple(command)
        self.problems: list[str] = []

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Keep what goes wrong in the log: pygls would show it, with its traceback, to the user."""
        _log.error("%s: %s", source.__name__, error, exc_info=error)

    def stop_jobs(self) -> None:
        """Kill every job; synchronous."""
        if hasattr(self, "session"):
            self.session.jobs.kill_all()


def make(command: Sequence[str] = ()) -> Server:
    """Make a server.

    Args:
        command: The command that runs a job, the job's folder to be appended; empty for the real one.
    """
    server = Server(command or processes.job_command())
    _register_lifecycle(server)
    _register_documents(server)
    _register_answers(server)
    _register_commands(server)
    return server


def main() -> None:
    """Serve over standard input and output until the client leaves; no job outlives this process."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    serve(make())


def serve(server: Server) -> None:
    """Serve over standard input and output; kills the jobs on every way out."""

    def leave(number: int, _frame: FrameType | None) -> None:
        server.stop_jobs()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ())):
        signal.signal(number, leave)
    try:
        server.start_io()
    finally:
        server.stop_jobs()


def _quiet(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T | None]]:
    """Make a handler answer nothing when it fails: an editor shows an error for what nobody asked for."""

    @functools.wraps(handler)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return await handler(*args, **kwargs)
        except Exception:  # noqa: BLE001 - the editor must be answered
            _log.exception("%s failed", handler.__name__)
            return None

    return answer


def _register_lifecycle(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: Server, params: types.InitializeParams) -> None:
        chosen, ls.problems = settings.read(params.initialization_options)
        documents = Documents(_encoding(ls))
        ls.session = Session(Editor(ls), chosen, documents, _roots(ls), ls.job_command)

    @server.feature(types.INITIALIZED)
    async def initialized(ls: Server, _params: types.InitializedParams) -> None:
        for problem in ls.problems:
            ls.session.editor.warn(problem)
        await ls.session.jobs.load()

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: Server, *_: object) -> None:
        # First and synchronously: Neovim closes the pipe without waiting for the answer.
        ls.stop_jobs()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders(ls: Server, _params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.session.roots = _roots(ls)
        ls.session.redraw()

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    async def cancel_progress(ls: Server, params: types.WorkDoneProgressCancelParams) -> None:
        ls.session.jobs.cancel_token(str(params.token))


def _register_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        ls.session.opened(
            ls.session.documents.open(item.uri, _path(item.uri), item.language_id, item.version, item.text)
        )

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        item = params.text_document
        document = ls.session.documents.change(item.uri, item.version, _changes(params.content_changes))
        if document is not None:
            ls.session.opened(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        ls.session.closed(params.text_document.uri)


def _register_answers(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, LENS)
    @_quiet
    async def lenses(ls: Server, params: types.CodeLensParams) -> msgspec.Raw:
        return ls.session.lenses(params.text_document.uri)

    @server.feature(types.CODE_LENS_RESOLVE)
    async def lens(ls: Server, params: types.CodeLens) -> types.CodeLens:
        return ls.session.lens(params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    @_quiet
    async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        return ls.session.hover(params.text_document.uri, params.position)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, ACTIONS)
    @_quiet
    async def code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        return await commands.completed(ls.session, ls.session.code_actions(params))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def code_action(ls: Server, params: types.CodeAction) -> types.CodeAction:
        pick = actions.read_pick(params.data)
        return params if pick is None else await commands.resolve(ls.session, params, pick)


_COMMANDS: dict[str, Callable[[Session, Ask], object]] = {
    "optimize": commands.optimize,
    "trust": commands.trust_and_optimize,
    "resume": commands.resume,
    "cancel": commands.cancel,
    "discard": commands.discard,
    "apply": commands.apply,
    "writeLaunch": commands.write_launch,
    "showDiff": commands.show_diff,
    "showEvidence": commands.show_evidence,
}


def _register_commands(server: Server) -> None:
    for name, work in _COMMANDS.items():
        _register_command(server, name, work)


def _register_command(server: Server, name: str, work: Callable[[Session, Ask], object]) -> None:
    @server.command(f"modelblaster.{name}")
    async def run(ls: Server, *arguments: object) -> object:
        ask = actions.read_ask(arguments[0] if arguments else {})
        if ask is None:
            raise JsonRpcInvalidParams(f"modelblaster.{name} takes one object: uri and kernel, or job")
        try:
            result = work(ls.session, ask)
            return await result if isinstance(result, Awaitable) else result
        except CommandError as error:
            ls.session.editor.warn(str(error))
            return None


def _changes(events: Sequence[types.TextDocumentContentChangeEvent]) -> Iterator[Change]:
    """Give the changes of a document: whole texts or, from clients that do not heed full sync, parts."""
    for event in events:
        if isinstance(event, types.TextDocumentContentChangePartial):
            start, end = event.range.start, event.range.end
            yield Change(event.text, (start.line, start.character), (end.line, end.character))
        else:
            yield Change(event.text)


def _encoding(ls: Server) -> Encoding:
    chosen = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding))
    return "utf-8" if chosen == "utf-8" else "utf-32" if chosen == "utf-32" else "utf-16"


def _roots(ls: Server) -> list[Path]:
    uris = [folder.uri for folder in ls.workspace.folders.values()] or [ls.workspace.root_uri]
    return [path for uri in uris if uri and (path := _path(uri)) is not None]


def _path(uri: str) -> Path | None:
    """Give a URI's file; None for unsaved text, notebook cells and whatever else is no file."""
    found = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(found) if found else None


def _version() -> str:
    from importlib.metadata import version

    return version("modelblaster")
