"""The values that pass between the server, the optimizer, the targets and the knowledge base.

All are frozen, hold only plain data, and travel as msgspec JSON or MessagePack without further code.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["in", "out", "inout", "scalar", "local"]
Origin = Literal["comment", "settings", "capture", "host code", "inferred", "probed"]
Precision = Literal["bitwise", "same", "fp32-emulated", "tf32", "half"]
Dtype = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"]

ITEM_BYTES: dict[str, int] = {
    "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2,
    "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8,
}  # fmt: skip


def digest(*parts: str) -> str:
    """Give 32 hex digits that name these texts, in this order."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel as declared.

    Attributes:
        name: Its name in the source.
        type_name: The element type as written, without qualifiers or the star: ``float``, ``uint4``.
        space: Address space of what it points to; ``value`` for a scalar.
        const: Whether what it points to is declared const.
        restrict: Whether it is declared restrict.
    """

    name: str
    type_name: str
    space: Literal["value", "global", "constant", "local", "image", "sampler"]
    const: bool = False
    restrict: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel found in a document.

    Attributes:
        target: Name of the target that found it, such as ``opencl``.
        language: LSP language id of the document's dialect.
        name: Name in the source.
        source: The whole translation unit, so that it builds by itself.
        start: Character offset in ``source`` of the kernel's first character.
        end: Offset one past its closing brace.
        parameters: As declared, in order.
        identity: Digest of the kernel's tokens: comments and spacing do not count.
        offset: Where ``source`` begins in the document; above 0 for OpenCL C inside a host program's string.
    """

    target: str
    language: str
    name: str
    source: str
    start: int
    end: int
    parameters: tuple[Parameter, ...]
    identity: str
    offset: int = 0

    @property
    def text(self) -> str:
        """The kernel's own text, from its first qualifier to its closing brace."""
        return self.source[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named size or scalar that a launch is written in.

    Attributes:
        value: What to measure with.
        low: Smallest value the kernel must be right for.
        high: Largest value to verify with.
        multiple: Every legal value is a multiple of this.
        origin: Where the value came from.
    """

    name: str
    value: float
    low: float = 1
    high: float = 1 << 31
    multiple: int = 1
    origin: Origin = "inferred"


@dataclass(frozen=True, slots=True)
class Argument:
    """What to pass for one parameter.

    Attributes:
        name: The parameter's name.
        role: ``scalar`` passes a value, ``local`` reserves local memory; the others are buffers.
        dtype: Element type.
        lanes: Elements of a vector type, 1 for a scalar type.
        extent: Elements (of ``dtype``, lanes counted) of the buffer, or the scalar's value: an expression
            over the symbols, in Python's arithmetic.
        fold: For an output of which only a fold matters (``sum``: the partial sums of a reduction), the
            fold; None when every element matters.
        low: Smallest value to fill an input with, an expression like ``extent``; empty for the dtype's usual
            range. An index that must stay below a size moves with it.
        high: Largest value to fill an input with, likewise.
        origin: Where this came from.
    """

    name: str
    role: Role
    dtype: Dtype
    extent: str
    lanes: int = 1
    fold: Literal["sum", "max", "min"] | None = None
    low: str = ""
    high: str = ""
    origin: Origin = "inferred"


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """How to run a kernel, at a range of sizes.

    Attributes:
        symbols: Sizes and scalars by name.
        arguments: One for each parameter, in order.
        global_size: Expressions over the symbols, one a dimension.
        local_size: Likewise; None leaves it to the runtime.
        options: Compiler options.
        tolerance: Relative error that the user allows, None to derive it from the original's own error.
        origin: Where the NDRange came from.
    """

    symbols: tuple[Symbol, ...]
    arguments: tuple[Argument, ...]
    global_size: tuple[str, ...]
    local_size: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    tolerance: float | None = None
    origin: Origin = "inferred"


@dataclass(frozen=True, slots=True)
class LaunchChange:
    """How a variant's NDRange follows from the original's.

    Attributes:
        global_size: Expressions over ``G0 G1 G2`` and ``L0 L1 L2``, the original's global and local sizes.
        local_size: Fixed sizes; None leaves it to the runtime.
        multiples: The original's global size must be a multiple of these, one a dimension, for the variant
            to be right; all 1 where it is right at every size.
    """

    global_size: tuple[str, ...]
    local_size: tuple[int, ...] | None
    multiples: tuple[int, ...] = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Device:
    """What a variant ran on; results of unlike devices are never compared.

    Attributes:
        key: Short, stable and readable: ``cpu-amd-zen4-pocl``.
        kind: ``cpu`` devices are timed by CPU time, ``gpu`` ones by events.
        compute_units: Cores or multiprocessors.
        vector_bits: Width of the widest vector unit, 0 where that means nothing.
    """

    key: str
    name: str
    kind: Literal["cpu", "gpu", "accelerator"]
    vendor: str
    driver: str
    toolchain: str
    compute_units: int
    vector_bits: int
    local_bytes: int
    max_work_group: int
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The performance state: what limits this kernel, said without naming the kernel.

    Attributes:
        family: ``map``, ``reduction``, ``row statistics``, ``transpose``, ``stencil``, ``contraction``,
            ``scan``, ``gather`` or ``unknown``.
        access: How operands are walked, sorted; of ``broadcast``, ``gather``, ``scatter``, ``strided``,
            ``unit``.
        dtype: The dtype that most traffic is in.
        size_class: Bytes touched as a power of 4: 10 is 1 MiB.
        intensity: Operations a byte as a power of 2, clipped to -4..10.
        bottleneck: ``memory``, ``compute``, ``latency``, ``math`` or ``unknown``; modelled unless profiled.
        target: Name of the target.
        device: The device's key.
    """

    family: str
    access: tuple[str, ...]
    dtype: str
    size_class: int
    intensity: int
    bottleneck: str
    target: str
    device: str


@dataclass(frozen=True, slots=True)
class Action:
    """A transformation with its parameters; ``str()`` gives ``jam(y, 8)``."""

    id: str
    parameters: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write it as a call."""
        return f"{self.id}({', '.join(self.parameters)})"


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that the target holds to be possible here, with the gain it expects (1.0 is none)."""

    action: Action
    expected: float
    reason: str


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Why an action does not apply; an answer, not an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Variant:
    """Source produced by a chain of actions.

    Attributes:
        source: The whole translation unit with the kernel rewritten.
        name: The kernel's name in ``source``.
        chain: The actions that led here from the original; empty for the original itself.
        launch: The launch it needs; None keeps the original's.
        options: Compiler options on top of the launch's.
    """

    source: str
    name: str
    chain: tuple[Action, ...] = ()
    launch: LaunchChange | None = None
    options: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Digest of everything that decides how it runs."""
        return digest(self.source, self.name, repr(self.launch), *self.options)


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace ``[start, end)``, in characters of a document's text, by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentEdits:
    """Edits of one document, which must still have the content they were made for.

    Attributes:
        path: Absolute path.
        identity: Digest of the document's text that the offsets refer to.
        edits: In order, not overlapping.
    """

    path: str
    identity: str
    edits: tuple[TextEdit, ...] = field(default_factory=tuple)
