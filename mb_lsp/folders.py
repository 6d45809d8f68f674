"""Where a user's data lies: jobs, the knowledge base, the list of trusted workspaces."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data() -> Path:
    """Give the user's data folder; ``MODELBLASTER_HOME`` overrides the platform's own place."""
    chosen = os.environ.get("MODELBLASTER_HOME")
    if chosen:
        return Path(chosen).expanduser()
    return _platform_data() / "modelblaster"


def jobs() -> Path:
    """Give the folder that holds one folder a job."""
    return data() / "jobs"


def knowledge() -> Path:
    """Give the folder of the knowledge base."""
    return data() / "knowledge"


def _platform_data() -> Path:
    if sys.platform.startswith("win"):
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    chosen = os.environ.get("XDG_DATA_HOME")
    return Path(chosen) if chosen else Path.home() / ".local" / "share"
