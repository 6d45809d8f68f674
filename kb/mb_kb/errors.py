"""What the knowledge base raises.

KnowledgeError
  Full       no room on the disk, or in the address space
  Locked     another process holds the base and did not let go in time
  Damaged    the file is no knowledge base, or part of it cannot be read
  TooNew     a newer version of this program wrote it
  ReadOnly   the folder or the file may not be written
"""

from __future__ import annotations


class KnowledgeError(Exception):
    """Base of all errors of this package; the message says what to do next."""


class Full(KnowledgeError):
    """There is no room to write; what was stored before is intact."""


class Locked(KnowledgeError):
    """Another process is writing and did not end in time."""


class Damaged(KnowledgeError):
    """The file cannot be trusted."""


class TooNew(KnowledgeError):
    """A newer version wrote the file; it is read, never written."""


class ReadOnly(KnowledgeError):
    """The folder or the file may not be written."""
