"""Draw ``docs/optimize.svg`` from a real run: ``python docs/picture.py FILE [NAME=VALUE...]``, in the root.

Further arguments are fields of ``mb_lsp.optimize.Options``: ``device=intel``.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console

from mb_lsp import follow, optimize, pick, report


def main() -> None:
    """Optimize the file's first kernel and draw what the command line prints."""
    file, *fields = sys.argv[1:]
    options = optimize.Options(file, **dict(field.split("=", 1) for field in fields))  # type: ignore[arg-type]
    document = pick.read(Path(file))
    kernel = pick.kernels(document)[0]
    job, folder = follow.new_job(kernel.name)
    request = optimize.request_for(options, document, kernel, job)
    log, cancelled = optimize.run_job(request, folder, lambda event: None)
    result = optimize.with_files(optimize.summarize(request, log, cancelled, file)[0], folder)
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(f"$ modelblaster optimize {file}", markup=False)
    report.show(console, result)
    title = f"modelblaster optimize {file}"
    (Path(__file__).parent / "optimize.svg").write_text(console.export_svg(title=title))


if __name__ == "__main__":
    main()
