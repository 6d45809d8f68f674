"""Names, spacing and comments do not matter: the same kernel has the same form up to names, and one State."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lifted import ROOT, from_text, kernels

from mb_targets.form.nest import Form
from mb_targets.model import Device, Kernel, LaunchSpec
from mb_targets.opencl.lift import lift
from mb_targets.opencl.state import state
from mb_targets.opencl.tokens import tokens

DEVICE = Device("cpu-test", "", "cpu", "", "", "", 2, 256, 1 << 15, 1024)
FILES = [ROOT / "examples/softmax.cl", ROOT / "examples/conv3x3.cl", ROOT / "examples/reduce_sum.cl",
         ROOT / "examples/matmul.cl", ROOT / "tests/data/relatives/sum_int.cl"]  # fmt: skip
KEPT = frozenset(
    {
        *("__kernel", "kernel", "__global", "global", "__local", "const", "int", "float", "unsigned", "void"),
        *(
            "for",
            "if",
            "else",
            "return",
            "define",
            "get_global_id",
            "get_local_id",
            "get_group_id",
            "barrier",
        ),
        *("CLK_LOCAL_MEM_FENCE", "INFINITY", "exp", "fmax", "reqd_work_group_size", "__attribute__"),
    }
)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def split(text: str) -> tuple[list[str], str]:
    """Part the launch's comments and the directives from the code; other comments go."""
    lines = [line for line in text.splitlines() if not re.match(r"//(?! mb:)", line)]
    head = [line for line in lines if line.startswith(("//", "#"))]
    return head, "\n".join(line for line in lines if line not in head)


def changed_text(text: str, stem: str, gap: str) -> str:
    """Give every name of the user's another one, and put another spacing between the tokens."""
    head, code = split(text)
    defined = [line.split()[1] for line in head if line.startswith("#define")]
    found = dict.fromkeys([*defined, *(n for n in _NAME.findall(code) if n not in KEPT)])
    names = {old: f"{stem}{k}" for k, old in enumerate(found)}

    def rename(line: str) -> str:
        return _NAME.sub(lambda m: names.get(m.group(), m.group()), line)

    defines = [rename(line) for line in head if line.startswith("#")]
    launches = [rename(line) for line in head if line.startswith("//")]
    return "\n".join([*defines, *launches, gap.join(tokens(rename(code)))]) + "\n"


def up_to_names(form: Form) -> str:
    """Write a form with its names numbered as they first stand; invented ones count like the user's."""
    numbers: dict[str, str] = {}

    def one(found: re.Match[str]) -> str:
        return f"{found.group(1)}='{numbers.setdefault(found.group(2), str(len(numbers)))}'"

    return re.sub(r"\b(name|buffer|text)='([^']*)'", one, repr(form))


def lifted(kernel: Kernel, launch: LaunchSpec) -> Form:
    form = lift(kernel, launch)
    assert isinstance(form, Form), form
    return form


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stem=st.sampled_from(["v", "q_", "zz", "k9x"]),
    gap=st.sampled_from([" ", "\n", "  /* so\n it is */ ", " // here\n"]),
)
def test_renaming_and_reformatting_give_the_same_form_and_state(path: Path, stem: str, gap: str) -> None:
    kernel, launch = next(kernels(path))
    changed, changed_launch = from_text(changed_text(path.read_text(), stem, gap))
    assert up_to_names(lifted(changed, changed_launch)) == up_to_names(lifted(kernel, launch))
    assert state(changed, changed_launch, DEVICE) == state(kernel, launch, DEVICE)
