"""A small kernel, host programs that launch it, and what they are after a variant was put in."""

from __future__ import annotations

from pathlib import Path

from mb_targets.model import DocumentEdits, Kernel, LaunchChange, LaunchSpec, NotApplicable, Variant, digest
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.hunks import apply
from mb_targets.opencl.launch import infer_launch
from mb_targets.opencl.patch import patch

KERNEL = """__kernel void scale(__global float *x, const int n)
{
    int i = get_global_id(0);
    // größe
    if (i < n)
        x[i] = x[i] * 2.0f;
}
"""
COMMENT = "// mb: global=(n,) local=(64,) n=1024 x=inout f32[n]\n"
BODY = "    int i = get_global_id(0);"
CHANGE = LaunchChange(("(G0 + 15) / 16",), (1,))


def variant_of(kernel: Kernel, change: LaunchChange | None = CHANGE, *options: str) -> Variant:
    end = "\r\n" if "\r\n" in kernel.source else "\n"
    replaced = kernel.text.replace(BODY, f"    size_t i = get_global_id(0);{end}    i *= 1;")
    source = kernel.source[: kernel.start] + replaced + kernel.source[kernel.end :]
    return Variant(source, kernel.name, (), change, options)


def patched(
    path: Path, language: str = "opencl", change: LaunchChange | None = CHANGE, options: tuple[str, ...] = ()
) -> dict[str, str]:
    """Give the documents after the edits, by file name."""
    made = edits(path, language, change, options)
    assert not isinstance(made, NotApplicable), made
    return {Path(d.path).name: applied(d) for d in made}


def edits(
    path: Path, language: str = "opencl", change: LaunchChange | None = CHANGE, options: tuple[str, ...] = ()
) -> list[DocumentEdits] | NotApplicable:
    text = path.read_bytes().decode()
    kernel = find_kernels(text, language)[0]
    launch = infer_launch(kernel, path)
    assert isinstance(launch, LaunchSpec), launch
    made = patch(kernel, launch, variant_of(kernel, change, *options), path, text)
    return made if isinstance(made, NotApplicable) else list(made)


def applied(document: DocumentEdits) -> str:
    text = Path(document.path).read_bytes().decode()
    assert document.identity == digest(text)
    return apply(text, list(document.edits))


def write(folder: Path, name: str, text: str) -> Path:
    (folder / ".git").mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    return path


HOST = """#include <CL/cl.h>
/* launches scale of a.cl */
void run(cl_program program, cl_command_queue queue, cl_mem x, cl_int n) {
    cl_int status;
    cl_kernel scale = clCreateKernel(program, "scale", &status); /* "scale" */
    clSetKernelArg(scale, 0, sizeof x, &x);
    clSetKernelArg(scale, 1, sizeof n, &n);
    DECLARED
    if (n > 0)
        clEnqueueNDRangeKernel(queue, scale, 1, NULL, GLOBAL, LOCAL, 0, NULL, NULL);
}
"""


def host(declared: str, global_size: str, local_size: str) -> str:
    text = HOST.replace("DECLARED", declared)
    return text.replace("GLOBAL", global_size).replace("LOCAL", local_size)


PYTHON = """import pyopencl as cl  # a.cl: größe
program = cl.Program(context, open("a.cl").read()).build()
{setup}
{call}
"""
