"""What a user would see in the diff: the printed kernel, for each step of a schedule."""

from pathlib import Path

import pytest

from mb_targets import registry
from mb_targets.model import Action, Device, LaunchSpec, Variant

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
DEVICE = Device("cpu-test", "test", "cpu", "v", "d", "t", 2, 512, 1 << 16, 4096)

CHAINS = {
    "matmul-register-block": ("matmul", "jam(dim1, 4); lanes(dim0, 8)"),
    "matmul-kept-launch": ("matmul", "jam(dim1, 2); lanes(dim0, 4); keep_launch()"),
    "matmul-local-tiles": ("matmul", "stage(16, 2, 16)"),
    "conv3x3-interior": ("conv3x3", "lanes(dim0, 16)"),
    "transpose-block": ("transpose", "jam(dim0, 2); lanes(dim1, 4)"),
    "transpose-local-tile": ("transpose", "stage(32, 8)"),
    "softmax-rows": ("softmax", "rewrite(reuse); rewrite(reciprocal); row_lanes(16, 2)"),
    "softmax-one-pass": ("softmax", "rewrite(one_pass)"),
    "softmax-group": ("softmax", "group(64)"),
    "layernorm-rows": ("layernorm", "rewrite(hoist); row_lanes(8, 1)"),
    "layernorm-welford": ("layernorm", "rewrite(one_pass)"),
    "gelu-exp": ("gelu", "rewrite(powers); rewrite(tanh); lanes(dim0, 16)"),
    "vadd-chunk": ("vadd", "chunk(dim0, 1024); row_lanes(16, 1); wide_ids()"),
    "reduce-sum-one-item": ("reduce_sum", "row_lanes(16, 4)"),
    "reduce-partials": ("reduce_partials", "partials(4); row_lanes(16, 4)"),
}


def chain(text: str) -> list[Action]:
    calls = [c.strip().rstrip(")").partition("(") for c in text.split(";")]
    return [Action(name, tuple(p.strip() for p in rest.split(",") if p.strip())) for name, _, rest in calls]


@pytest.mark.parametrize("case", CHAINS)
def test_printed_variant_reads_as_expected(case: str, request: pytest.FixtureRequest) -> None:
    name, steps = CHAINS[case]
    path = EXAMPLES / f"{name}.cl"
    target = registry.load("opencl")
    [kernel] = target.find_kernels(path.read_text(), "opencl")
    launch = target.infer_launch(kernel, path)
    assert isinstance(launch, LaunchSpec)
    variant = Variant(kernel.source, kernel.name)
    for action in chain(steps):
        made = target.apply(kernel, launch, DEVICE, variant, action)
        assert isinstance(made, Variant), made
        variant = made
    [printed] = target.find_kernels(variant.source, "opencl")
    change = variant.launch
    text = f"// {steps}\n// {change.global_size} {change.local_size}\n" if change else f"// {steps}\n"
    text += printed.text + "\n"
    golden = HERE / "printed" / f"{case}.cl"
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert text == golden.read_text()
