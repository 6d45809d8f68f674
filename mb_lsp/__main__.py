"""``python -m mb_lsp``: the language server over stdio."""

from mb_lsp.server import main

main()
