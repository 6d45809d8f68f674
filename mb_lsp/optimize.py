"""``modelblaster optimize``: a job for each kernel, shown while it runs, then its result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mb_agent import events
from mb_lsp import folders, follow, pick, processes, results, salvage
from mb_lsp.problems import Code, CommandError
from mb_lsp.write import apply_edits
from mb_targets import registry
from mb_targets.model import Kernel, NotApplicable, Precision


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line.

    Attributes:
        knowledge: Folder of the knowledge base, empty to do without.
    """

    file: str
    seconds: float = 60.0
    candidates: int = 10_000
    device: str = ""
    apply: bool = False
    as_json: bool = False
    seed: int | None = None
    knowledge: str = ""
    precision: Precision = "same"
    keep_job: bool = False


Watch = Callable[[events.Event], None]


def run(options: Options) -> Code:
    """Optimize the kernel or kernels of a file, print what was found, and give the exit code.

    Raises:
        CommandError: The file or its kernel cannot be found, or this is not Linux.
    """
    processes.require_platform()
    path, name = pick.split(options.file)
    count = len(pick.kernels(pick.read(path), name))
    found: list[results.Result] = []
    codes: list[Code] = []
    for number in range(count):
        # Read anew: the kernel before this one may have been written.
        document = pick.read(path)
        kernels = pick.kernels(document, name)
        if len(kernels) != count:
            raise CommandError(f"{path} changed meanwhile; run the command again on the new text")
        result, code = _one(options, document, kernels[number])
        found.append(result)
        codes.append(code)
        if not options.as_json:
            _print(result)
        if code == Code.CANCELLED:
            break
    if options.as_json:
        sys.stdout.buffer.write(to_json(found, several=count > 1) + b"\n")
        sys.stdout.flush()
    return max(codes)


def to_json(found: list[results.Result], several: bool) -> bytes:
    """Write one object, or a list where the file has several kernels and none was named."""
    return msgspec.json.format(msgspec.json.encode(found if several else found[0]), indent=2)


def request_for(options: Options, document: pick.Document, kernel: Kernel, job: str) -> events.Request:
    """Write down what is asked of a job."""
    return events.Request(
        job=job,
        path=str(document.path.resolve()),
        text=document.text,
        kernel=kernel,
        offset=kernel.offset,
        budget=events.Budget(options.seconds, options.candidates),
        device=options.device,
        knowledge=options.knowledge,
        precision=options.precision,
        seed=options.seed,
    )


def run_job(request: events.Request, folder: Path, watch: Watch) -> tuple[list[events.Event], bool]:
    """Run a job to its end.

    Returns:
        Its events, and whether it was cancelled by an interrupt.
    """
    follow.prepare(folder, request)
    log: list[events.Event] = []
    process = follow.JobProcess(folder)
    try:
        for event in process.events():
            log.append(event)
            watch(event)
    except KeyboardInterrupt:
        process.cancel()
        return events.read_log(folder), True
    finally:
        process.close()
    return log, False


def _one(options: Options, document: pick.Document, kernel: Kernel) -> tuple[results.Result, Code]:
    from mb_lsp.display import open_display

    job, folder = follow.new_job(kernel.name)
    request = request_for(options, document, kernel, job)
    try:
        with open_display(kernel.name, options.seconds) as display:
            log, cancelled = run_job(request, folder, display.show)
    except CommandError as error:
        failed = results.Result(results.SCHEMA, str(document.path), kernel.name, "failed", reason=str(error))
        return failed, error.code
    result, code = summarize(request, log, cancelled, str(document.path))
    result = with_files(result, folder)
    if options.apply and result.verdict == "faster":
        result, code = _applied(result, request, log)
    if options.keep_job or code == Code.INTERNAL or result.offers:
        return msgspec.structs.replace(result, job=str(folder)), code
    follow.discard(folder)
    return result, code


def summarize(
    request: events.Request, log: list[events.Event], cancelled: bool, file: str
) -> tuple[results.Result, Code]:
    """Turn a job's events into its result and exit code."""
    result = results.Result(results.SCHEMA, file, request.kernel.name, "nothing faster")
    started = next((e for e in log if isinstance(e, events.Started)), None)
    if started is not None:
        result = msgspec.structs.replace(
            result,
            launch=results.launch_result(started.launch, started.launch_comment),
            device=started.device.key,
            seed=started.seed,
        )
    last = log[-1] if log else None
    if isinstance(last, events.Finished):
        result = msgspec.structs.replace(
            result,
            tried=last.tried,
            refused=last.refused,
            reason=last.reason + held_back(log),
            control=last.control,
        )
        if not last.tried and not last.offers:
            result = msgspec.structs.replace(result, verdict="nothing tried")
        return _with_offers(result, last.offers, "faster"), Code.DONE
    if isinstance(last, events.Failed) and not cancelled:
        failed = msgspec.structs.replace(result, verdict="failed", reason=last.message, question=last.comment)
        return _with_offers(failed, salvage.offers(request, log), "failed"), follow.exit_code(last)
    tried = {e.variant.hash: e.outcome.verdict.refused for e in log if isinstance(e, events.Tried)}
    result = msgspec.structs.replace(
        result, verdict="cancelled", tried=len(tried), refused=sum(tried.values())
    )
    return _with_offers(result, salvage.offers(request, log), "cancelled"), Code.CANCELLED


def with_files(result: results.Result, folder: Path) -> results.Result:
    """Write each offer's diff into the job's folder; a disk that is full loses the files, not the result."""
    offers = []
    for offer in result.offers:
        file = folder / ("changes-launch.diff" if offer.changes_launch else "keeps-launch.diff")
        try:
            file.write_text(offer.diff)
        except OSError:
            return result
        offers.append(msgspec.structs.replace(offer, diff_file=str(file)))
    return msgspec.structs.replace(result, offers=tuple(offers))


def held_back(log: list[events.Event]) -> str:
    """Say which checks that could not be made kept variants from being offered; empty when none did."""
    last = log[-1]
    if isinstance(last, events.Finished) and last.offers:
        return ""
    verdicts = [e.outcome.verdict for e in log if isinstance(e, events.Tried)]
    missing = {c.name for v in verdicts if not v.refused and not v.full for c in v.checks if c.passed is None}
    if not missing:
        return ""
    return (
        f"; variants with the right values are not offered for want of a check: {', '.join(sorted(missing))} "
        "(modelblaster doctor says what to install)"
    )


def _with_offers(
    result: results.Result, offers: tuple[events.Offer, ...], verdict: results.VerdictWord
) -> results.Result:
    if not offers:
        return result
    shown = tuple(results.offer_result(o, final=verdict == "faster") for o in offers)
    best = shown[0]
    return msgspec.structs.replace(
        result,
        verdict=verdict,
        level=best.level,
        speedup=best.speedup,
        diff=best.diff,
        changes_launch=best.changes_launch,
        offers=shown,
    )


def _applied(
    result: results.Result, request: events.Request, log: list[events.Event]
) -> tuple[results.Result, Code]:
    """Write the best offer to the user's files, or say why not."""
    last, started = log[-1], next(e for e in log if isinstance(e, events.Started))
    assert isinstance(last, events.Finished)
    target = registry.load(request.kernel.target)
    variant = last.offers[0].variant
    edits = target.patch(request.kernel, started.launch, variant, Path(request.path), request.text)
    if isinstance(edits, NotApplicable):
        problem = f"this variant cannot be written: {edits.reason}; the diff shows it"
        return msgspec.structs.replace(result, problem=problem), Code.INPUT
    try:
        written = tuple(str(p) for p in apply_edits(edits))
    except CommandError as error:
        return msgspec.structs.replace(result, problem=str(error)), error.code
    return msgspec.structs.replace(result, applied=written), Code.DONE


def _print(result: results.Result) -> None:
    from mb_lsp.report import open_console, show

    show(open_console(), result)


def default_knowledge() -> str:
    """Give the folder of the user's own knowledge base."""
    return str(folders.knowledge())
