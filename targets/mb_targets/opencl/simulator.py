"""Run a simulation file under the Oclgrind that pip installs, which comes without its command.

``python -m mb_targets.opencl.simulator OPTIONS`` in the folder of ``kernel.sim`` does what the command
``oclgrind-kernel`` does; ``environment`` gives the variables that tell the library what to check. Only files
that ``sanitize`` wrote are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CHECKS = {"--data-races": "OCLGRIND_DATA_RACES", "--uninitialized": "OCLGRIND_UNINITIALIZED"}


def environment(library: Path, flags: Sequence[str], folder: Path) -> dict[str, str]:
    """Give the variables of a simulator process; writes its vendors folder into ``folder``."""
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "oclgrind.icd").write_text(f"{library}\n")
    return {
        "OCL_ICD_VENDORS": str(vendors),
        "PYOPENCL_NO_CACHE": "1",
        "OCLGRIND_LOG": "log",
        "OCLGRIND_MAX_ERRORS": "1",
        "OCLGRIND_MAX_WGSIZE": "4096",
        "OCLGRIND_LOCAL_MEM_SIZE": str(1 << 20),
        "OCLGRIND_CONSTANT_MEM_SIZE": str(1 << 26),
        **{CHECKS[flag]: "1" for flag in flags},
    }


def main() -> None:
    """Run the simulation in the working directory; raises where the kernel did not run to its end."""
    import pyopencl as cl

    # Else the loader also adds what pip installed beside pyopencl.
    os.environ["PYOPENCL_HOME"] = os.getcwd()
    file, name, *sizes = Path("kernel.sim").read_text().splitlines()
    global_size, local_size = (tuple(map(int, line.split())) for line in sizes[:2])
    context = cl.Context(cl.get_platforms()[0].get_devices())
    queue = cl.CommandQueue(context)
    program = cl.Program(context, Path(file).read_text()).build(sys.argv[1])
    kernel = cl.Kernel(program, name)
    buffers: list[cl.Buffer] = []  # a kernel's arguments do not keep their buffers alive
    for index, (size, data) in enumerate(arguments(sizes[2:])):
        space = kernel.get_arg_info(index, cl.kernel_arg_info.ADDRESS_QUALIFIER)
        if space == cl.kernel_arg_address_qualifier.LOCAL:
            kernel.set_arg(index, cl.LocalMemory(size))  # type: ignore[arg-type]  # its stub forgot this one
        elif space == cl.kernel_arg_address_qualifier.PRIVATE:
            kernel.set_arg(index, data)
        elif not size:
            kernel.set_arg(index, None)
        else:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            buffers.append(cl.Buffer(context, flags, hostbuf=bytearray(data)))
            kernel.set_arg(index, buffers[-1])
    cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
    queue.finish()


def arguments(lines: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Read the arguments: the bytes of each, and their data; local memory has none."""
    rest = iter(lines)
    for line in rest:
        head = line.strip("<>").split()
        if head == ["null"]:
            yield 0, b""
            continue
        size = int(head[0].removeprefix("size="))
        if len(head) == 1:
            yield size, b""
        elif head[1] == "uint":
            yield size, b"".join(int(word, 16).to_bytes(4, "little") for word in next(rest).split())
        else:
            yield size, bytes.fromhex(next(rest))


if __name__ == "__main__":
    main()
