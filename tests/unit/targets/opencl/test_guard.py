import ctypes
import signal
import subprocess
import sys

import pytest

from mb_targets.opencl.guard import PAGE, Guarded


def signal_of_reading(offset, size):
    """Read a byte of a guarded buffer in a process of its own; give the signal that ended it, 0 for none."""
    program = (
        "import ctypes\nfrom mb_targets.opencl.guard import Guarded\n"
        f"memory = Guarded({size})\nctypes.string_at(memory.address + {offset}, 1)"
    )
    return -subprocess.run([sys.executable, "-c", program], check=False).returncode


@pytest.mark.parametrize("size", [1, 100, PAGE, PAGE + 4])
def test_last_byte_touches_the_protected_page(size):
    assert signal_of_reading(size - 1, size) == 0
    assert signal_of_reading(size, size) == signal.SIGSEGV


def test_page_before_the_start_is_protected():
    assert signal_of_reading(-1, PAGE) == signal.SIGSEGV


@pytest.mark.parametrize("alignment", [1, 4, 64, 128])
def test_start_is_aligned(alignment):
    memory = Guarded(37, alignment)
    assert memory.address % alignment == 0
    memory.release()


def test_contents_are_what_was_filled_in():
    memory = Guarded(5000)
    data = bytes(i % 251 for i in range(5000))
    memory.fill(data)
    assert memory.view.tobytes() == data
    assert memory.holds(memoryview(data))
    memory.release()


def test_one_changed_byte_is_noticed():
    memory = Guarded(5000)
    memory.fill(bytes(5000))
    memory.view[4999] = 1
    assert not memory.holds(bytes(5000))
    memory.release()


@pytest.mark.parametrize(("offset", "side"), [(-1, "before the start"), (37, "past the end")])
def test_write_beside_the_bytes_is_named(offset, side):
    memory = Guarded(37, 64)
    assert memory.damage() == ""
    ctypes.memset(memory.address + offset, 0, 1)
    assert memory.damage() == side
    memory.release()


def test_empty_memory_holds_nothing():
    memory = Guarded(0)
    memory.fill(b"")
    assert memory.holds(b"")
    assert memory.damage() == ""
    memory.release()


def test_consecutive_buffers_live_at_different_addresses():
    first, second = Guarded(64), Guarded(64)
    assert first.address != second.address
    first.release()
    second.release()


def test_too_much_memory_is_refused():
    with pytest.raises(MemoryError):
        Guarded(1 << 60)
