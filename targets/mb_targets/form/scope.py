"""What names mean while a function is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mb_targets.form.dialect import Unliftable
from mb_targets.form.nest import Const, Expr, Var
from mb_targets.model import Dtype


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value: what reading the name gives. Only a variable of the form can be assigned."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer into a buffer or array, ``offset`` elements from its start.

    Attributes:
        dims: Lengths of the inner dimensions where it points to rows, innermost last.
    """

    buffer: str
    offset: Expr
    dtype: Dtype
    dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A variable that may not be read until it is assigned again; says why."""

    reason: str
    variable: Var


Meaning: TypeAlias = Scalar | Pointer | Forgotten
Kind = Literal["plain", "loop", "branch", "function"]


@dataclass(slots=True)
class Scope:
    """One block's names."""

    kind: Kind
    names: dict[str, Meaning] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)


ZERO = Const(0, "i32")


class Scopes:
    """The blocks around the place being read, innermost last."""

    def __init__(self) -> None:
        self._stack: list[Scope] = [Scope("function")]

    def push(self, kind: Kind) -> None:
        """Enter a block."""
        self._stack.append(Scope(kind))

    def pop(self, spliced: bool = False) -> None:
        """Leave a block; if its statements are spliced into the one around, its names stay taken there."""
        left = self._stack.pop()
        if spliced:
            self._stack[-1].taken |= left.taken

    def find(self, name: str) -> Meaning | None:
        """Look a name up, innermost block first; a function's body sees no block around its call."""
        for scope in self._visible():
            if name in scope.names:
                return scope.names[name]
        return None

    def declare(self, name: str, meaning: Meaning) -> None:
        """Give a name a meaning in the innermost block."""
        self._stack[-1].names[name] = meaning

    def change(self, name: str, meaning: Meaning) -> None:
        """Give a name another meaning, where that is the same on every path.

        Raises:
            Unliftable: The change depends on a branch, or repeats in a loop.
        """
        for scope in self._visible():
            if name in scope.names:
                scope.names[name] = meaning
                return
            if scope.kind == "loop":
                raise Unliftable(f"pointer {name} moves inside a loop")
            if scope.kind == "branch":
                raise Unliftable(f"pointer {name} moves inside a branch")

    def set(self, name: str, meaning: Meaning) -> None:
        """Give a name another meaning in the block that declared it, whatever stands between."""
        for scope in self._visible():
            if name in scope.names:
                scope.names[name] = meaning
                return

    def fresh(self, name: str) -> str:
        """Make a variable's name that shadows none, and take it in the innermost block."""
        taken = {n for scope in self._stack for n in scope.taken}
        new, count = name, 1
        while new in taken:
            new, count = f"{name}_{count}", count + 1
        self._stack[-1].taken.add(new)
        return new

    def take(self, name: str) -> None:
        """Reserve a name in the innermost block."""
        self._stack[-1].taken.add(name)

    def variable(self, name: str) -> Var | None:
        """Find the form's variable that a name stands for; None where it stands for none."""
        match self.find(name):
            case Scalar(value=Var() as found) if not found.name.startswith("@"):
                return found
            case Forgotten(variable=found):
                return found
            case _:
                return None

    def _visible(self) -> Iterator[Scope]:
        for scope in reversed(self._stack):
            yield scope
            if scope.kind == "function":
                return
