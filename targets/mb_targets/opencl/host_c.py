"""Find the launches of a kernel in C and C++: ``clEnqueueNDRangeKernel`` and the C++ bindings' way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mb_targets.opencl.sites import Language, Site, Sizes, Span
from mb_targets.opencl.tokens import blank, closing, spans, without_comments

_MADE = re.compile(
    r"""(?P<name>[A-Za-z_][\w.\[\]]*(?:->[\w.\[\]]+)*)\s*=\s*
        (?:clCreateKernel|(?:cl::)?Kernel)\s*[({][^;"]*"(?P<of>\w+)"
    |\b(?:cl::)?Kernel\s+(?P<bound>\w+)\s*[({][^;"]*"(?P<bound_of>\w+)\"""",
    re.VERBOSE,
)
_ENQUEUE = re.compile(r"\b(?:(?P<c>clEnqueueNDRangeKernel)|(?P<cpp>enqueueNDRangeKernel))\s*\(")
_SET_ARGUMENT = re.compile(r"\bclSetKernelArg\s*\(")
_BUILD = re.compile(r"\bclBuildProgram\s*\(")
_OF_KERNELS = re.compile(
    r"cl(?:SetKernel\w*|(?:Get|Release|Retain|Clone)Kernel\w*|EnqueueNDRangeKernel)|enqueueNDRangeKernel"
    r"|sizeof|if|while|assert"
)
_SHOWING = re.compile(
    r"printf|fprintf|snprintf|puts|fputs|perror|strcmp|strncmp|strstr|err|warn|LOG\w*|log\w*"
)
_NULL = re.compile(r"(?:NULL|0|nullptr|(?:cl::)?NullRange)")
_RANGE = re.compile(r"(?:cl::)?NDRange\s*(?=\()")
_LITERAL = re.compile(r"(?:\(\s*(?:const\s+)?(?:std::)?size_t\s*\[\s*\d*\s*\]\s*\)\s*)?(?=\{)")
_CONSTRUCTED = re.compile(r"\s*(?:\{\s*(?=\{)|(?:cl::)?NDRange\s*(?=[({]))")
_VARIABLE = re.compile(
    r"(?P<address>&\s*)?(?P<name>[A-Za-z_]\w*)(?:\s*\.\s*data\s*\(\s*\))?(?:\s*\[\s*0\s*\])?"
)


@dataclass(frozen=True, slots=True)
class _Made:
    """Where a variable is given a kernel: from ``start`` to ``end``, valid until ``scope``."""

    start: int
    end: int
    scope: int
    variable: str
    kernel: str


def sites(path: Path, text: str, name: str) -> list[Site]:
    """List the launches of a kernel in a C or C++ program; one that cannot be read carries the reason."""
    code = without_comments(text)
    language: Language = "c" if path.suffix == ".c" else "cpp"
    made = [_made(code, m) for m in _MADE.finditer(code)]
    found = [
        site
        for call in _ENQUEUE.finditer(blank(text))  # a macro's launch is its users'
        if (site := _site(path, text, code, language, call, made, name)) is not None
    ]
    reason = "how it is launched from there could not be read"
    return found + [
        Site(path, text, language, where, reason=reason) for where in _unexplained(code, name, made, found)
    ]


def _made(code: str, found: re.Match[str]) -> _Made:
    variable, kernel = found["name"] or found["bound"], found["of"] or found["bound_of"]
    declared = found["bound"] or re.search(r"\b(?:cl_kernel|auto|Kernel)\s+\Z", code[: found.start()])
    scope = _scope_end(code, found.start()) if declared else len(code)
    return _Made(found.start(), found.end(), scope, variable, kernel)


def _unexplained(code: str, name: str, made: list[_Made], found: list[Site]) -> Iterator[Span]:
    """Give the places that may launch the kernel in another way than the sites found."""
    ours = [m for m in made if m.kernel == name]
    launched = {_passed(code, site) for site in found}
    for mention in re.finditer(rf'"{re.escape(name)}"', code):
        taken = next((m for m in ours if m.start <= mention.start() < m.end), None)
        if taken is None:
            printed = code[: mention.start()].rstrip().endswith("<<")
            explained = printed or bool(_SHOWING.fullmatch(_callee(code, mention.start())))
        else:
            explained = taken.variable in launched
        if not explained:
            yield Span(mention.start(), mention.end(), mention.group())
    for variable in dict.fromkeys(m.variable for m in ours):
        pattern = re.compile(rf"(?<![\w.>]){re.escape(variable)}(?![\w\[])(?!\s*(?:=[^=]|\.|->|\())")
        for use in pattern.finditer(code):
            holder = next(
                (m for m in ours if m.variable == variable and m.end <= use.start() < m.scope), None
            )
            held = holder is not None and _kernel_of(code, variable, use.start(), made) == name
            if held and _is_passed_on(code, use.start(), use.end()):
                yield Span(use.start(), use.end(), use.group())


def _passed(code: str, site: Site) -> str:
    """Give the kernel's variable at a launch."""
    opened = code.index("(", site.call.start)
    passed = _arguments(code, opened + 1, site.call.end - 1)
    return passed[1 if code.startswith("clEnqueue", site.call.start) else 0].text


def _is_passed_on(code: str, start: int, end: int) -> bool:
    """Tell whether a use of a kernel's variable hands it to something that may launch it."""
    before = code[:start].rstrip(" \t\r\n&*(")
    if re.search(r"\breturn\Z", before) or re.search(r"(?<![=!<>])=\Z", before):
        return True
    callee = _callee(code, start)
    after = code[end:].lstrip()
    compared = before.endswith(("!", "==", "!=")) or after.startswith(("==", "!=", "&&", "||"))
    return bool(callee) and not compared and not _OF_KERNELS.fullmatch(callee)


def _callee(code: str, at: int) -> str:
    """Name what is called with the argument that stands at a place; empty where it is no argument."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if code[i] in ")]}":
            depth += 1
        elif code[i] in "([{":
            depth -= 1
            if depth < 0:
                called = re.search(r"([A-Za-z_]\w*)\s*\Z", code[max(0, i - 80) : i])
                if code[i] == "{":
                    return "{" if re.search(r"(?:[=(,>]|\breturn)\s*\Z", code[max(0, i - 80) : i]) else ""
                return called[1] if called else ""
        elif code[i] == ";" and depth == 0:
            return ""
    return ""


def _site(
    path: Path,
    text: str,
    code: str,
    language: Language,
    call: re.Match[str],
    made: list[_Made],
    name: str,
) -> Site | None:
    end = closing(code, call.end() - 1)
    passed = _arguments(code, call.end(), end) if end >= 0 else []
    first, order = (1, (4, 5)) if call["c"] else (0, (2, 3))
    if len(passed) <= order[1] - (0 if call["c"] else 1):
        return None
    kernel = passed[first].text
    if _kernel_of(code, kernel, call.start(), made) != name:
        return None
    whole = Span(call.start(), end + 1, code[call.start() : end + 1])
    global_size = _sizes(code, passed[order[0]], call.start())
    local_size = _sizes(code, passed[order[1]], call.start()) if len(passed) > order[1] else None
    return Site(
        path=path,
        text=text,
        language=language,
        call=whole,
        global_size=global_size,
        local_size=local_size,
        arguments=dict(_set_arguments(code, kernel)),
        options=_options(code),
        reason="" if global_size and local_size else "where its sizes come from could not be read",
    )


def _kernel_of(code: str, variable: str, at: int, made: list[_Made]) -> str:
    """Name the kernel that a variable holds at a place: the last one made before it, else the first after.

    Nothing where it is a parameter there: which kernel that is, is the callers' business.
    """
    if _is_parameter(code, variable, at):
        return ""
    candidates = [m for m in made if m.variable == variable and at < m.scope]
    before = [m.kernel for m in candidates if m.start < at]
    after = [m.kernel for m in candidates if m.start > at and m.scope == len(code)]
    return before[-1] if before else after[0] if after else ""


def _is_parameter(code: str, variable: str, at: int) -> bool:
    pattern = re.compile(rf"\b(?:cl_kernel|Kernel)\s*[&*]?\s*{re.escape(variable)}\s*[,)][^;{{}}]*\{{")
    return any(m.end() <= at < _scope_end(code, m.end()) for m in pattern.finditer(code, 0, at))


def _arguments(code: str, start: int, end: int) -> list[Span]:
    return [_stripped(code, start + a, start + b) for a, b in spans(code[start:end])]


def _stripped(code: str, start: int, end: int) -> Span:
    inner = code[start:end]
    start += len(inner) - len(inner.lstrip())
    return Span(start, start + len(inner.strip()), inner.strip())


def _sizes(code: str, argument: Span, at: int) -> Sizes | None:
    if _NULL.fullmatch(argument.text):
        ranged = "Range" in argument.text
        return Sizes(argument, (), "ndrange" if ranged else "braces")
    for pattern, form in ((_RANGE, "ndrange"), (_LITERAL, "braces")):
        found = pattern.match(argument.text)
        if found and closing(argument.text, found.end()) == len(argument.text) - 1:
            inside = _arguments(code, argument.start + found.end() + 1, argument.end - 1)
            return Sizes(argument, tuple(inside), "ndrange" if form == "ndrange" else "braces")
    variable = _VARIABLE.fullmatch(argument.text)
    return _declared(code, argument, variable["name"], bool(variable["address"]), at) if variable else None


def _declared(code: str, argument: Span, name: str, scalar: bool, at: int) -> Sizes | None:
    """Follow a variable to the nearest declaration before the call."""
    pattern = re.compile(
        rf"\b(?:size_t|(?P<range>NDRange)|auto|array\s*<[^;>]*>)\s+(?:[^;]*?,\s*)?{name}\s*"
        r"(?:\[[^\]]*\]\s*)?(?P<rest>[=({;,])"
    )
    declarations = list(pattern.finditer(code, 0, at))
    if not declarations:
        return None
    found = declarations[-1]
    elements = _initial(code, found.start("rest"), name, scalar, at)
    if not elements:
        return None
    uses = len(re.findall(rf"\b{name}\b", code[found.start() : _scope_end(code, at)]))
    assigned = sum(1 for _ in re.finditer(rf"\b{name}\s*\[\s*\d+\s*\]\s*=(?!=)", code[found.end() : at]))
    return Sizes(
        whole=argument,
        elements=tuple(elements),
        form="ndrange" if found["range"] else "braces",
        name=f"(&{name})" if scalar and len(elements) == 1 else name,
        shared=uses > 2 + assigned or assigned not in (0, len(elements)),
    )


def _initial(code: str, at: int, name: str, scalar: bool, call: int) -> list[Span]:
    """Read the initial value that begins at a sign after a declared name, or the elements assigned later."""
    if code[at] in ";,":
        return _assigned(code, at, name, call)
    ranged = None
    if code[at] == "=":
        ranged = _CONSTRUCTED.match(code, at + 1)
        at = ranged.end() if ranged else at + 1 + len(code[at + 1 :]) - len(code[at + 1 :].lstrip())
    if code[at] == "{" or (code[at] == "(" and (ranged or not scalar)):
        end = closing(code, at)
        inside = _arguments(code, at + 1, end) if end >= 0 else []
        return inside if all(s.text for s in inside) else []
    stop = re.compile(r"[;,]").search(code, at)
    return [_stripped(code, at, stop.start())] if stop and scalar else []


def _assigned(code: str, start: int, name: str, end: int) -> list[Span]:
    """Read ``name[0] = ...; name[1] = ...;``; nothing where an element is left out."""
    pattern = re.compile(rf"\b{name}\s*\[\s*(\d+)\s*\]\s*=(?!=)([^;]*);")
    found = {int(m[1]): _stripped(code, m.start(2), m.end(2)) for m in pattern.finditer(code, start, end)}
    return [found[i] for i in range(len(found))] if sorted(found) == list(range(len(found))) else []


def _scope_end(code: str, at: int) -> int:
    """Find the end of the block that a place is in."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if found.group() == "{" else -1
        if depth < 0:
            return found.start()
    return len(code)


def _set_arguments(code: str, kernel: str) -> Iterator[tuple[int, str]]:
    """Give index and variable of each ``clSetKernelArg(kernel, 2, sizeof n, &n)``."""
    for call in _SET_ARGUMENT.finditer(code):
        end = closing(code, call.end() - 1)
        passed = _arguments(code, call.end(), end) if end >= 0 else []
        if len(passed) == 4 and passed[0].text == kernel and passed[1].text.isdigit():
            yield int(passed[1].text), passed[3].text.lstrip("&").strip()


def _options(code: str) -> Span | None:
    """Find the options argument of the one ``clBuildProgram``."""
    calls = list(_BUILD.finditer(code))
    if len(calls) != 1:
        return None
    end = closing(code, calls[0].end() - 1)
    passed = _arguments(code, calls[0].end(), end) if end >= 0 else []
    return passed[3] if len(passed) > 3 else None
