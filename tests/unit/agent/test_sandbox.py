import os
import select
import tempfile
import time

import pytest

from mb_agent import sandbox

CONFINED = "from mb_agent import sandbox; sandbox.enter()\nimport os, socket, ctypes\n"


def printed(code):
    """Run code in a child that entered its limits; give what it printed, and the error it raised by name."""
    guarded = "".join(f"    {line}\n" for line in code.splitlines())
    program = f"try:\n{guarded}except BaseException as error: print('raised', type(error).__name__)"
    child = sandbox.start("timeit", ["-n1", "-r1", "-s", CONFINED + program, "pass"])
    output = b""
    while select.select([child.output], [], [], 20)[0] and (data := os.read(child.output, 4096)):
        output += data
    child.end()
    return output.decode()


def test_child_may_write_in_its_own_folder():
    assert "wrote" in printed("open('here', 'w').write('x'); print('wrote')")


def test_child_may_not_write_elsewhere(tmp_path):
    assert "PermissionError" in printed(f"open('{tmp_path}/there', 'w')")
    assert list(tmp_path.iterdir()) == []


def test_child_may_not_delete_elsewhere(tmp_path):
    (tmp_path / "kept").write_text("x")
    assert "PermissionError" in printed(f"os.unlink('{tmp_path}/kept')")


def test_child_may_read_elsewhere(tmp_path):
    (tmp_path / "header").write_text("readable")
    assert "readable" in printed(f"print(open('{tmp_path}/header').read())")


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK"])
def test_child_has_no_network(family):
    assert "PermissionError" in printed(f"socket.socket(socket.{family}, socket.SOCK_DGRAM)")


def test_child_may_start_threads_and_processes():
    code = "import subprocess; print(subprocess.run(['/bin/echo', 'started'], capture_output=True).stdout)"
    assert "started" in printed(code)


def test_child_may_not_read_other_processes():
    code = (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print('refused', libc.ptrace(16, os.getppid(), 0, 0), ctypes.get_errno())"
    )
    assert "refused -1 1" in printed(code)


def test_child_may_not_signal_processes_outside():
    assert "PermissionError" in printed("os.kill(os.getppid(), 0)")


def test_environment_is_made_from_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PLANTED", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    made = sandbox.environment(tmp_path)
    assert "PLANTED" not in made
    assert made["CUDA_VISIBLE_DEVICES"] == "0"
    assert made["HOME"] == made["TMPDIR"] == str(tmp_path)


def test_ending_a_child_ends_what_it_started():
    child = sandbox.start("timeit", ["-n1", "-r1", "import subprocess, os; subprocess.run(['sleep', '60'])"])
    while not (started := _members(child.pid)) or len(started) < 2:
        time.sleep(0.01)
    child.end()
    for _ in range(200):
        if not any(_alive(pid) for pid in started):
            return
        time.sleep(0.01)
    pytest.fail("a process of the group lives on")


def test_folders_that_killed_processes_left_behind_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "modelblaster-worker-left"
    (left / "cache").mkdir(parents=True)
    os.utime(left, (0, 0))
    sandbox.start("timeit", ["-n1", "-r1", "pass"]).end()
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_living_child_is_not_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living = sandbox.start("timeit", ["-n1", "-r1", "import time; time.sleep(60)"])
    os.utime(living.folder, (0, 0))
    sandbox.start("timeit", ["-n1", "-r1", "pass"]).end()
    assert living.folder.is_dir()
    living.end()


def _members(group):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(name)) == group:
                found.append(int(name))
        except ProcessLookupError:
            continue
    return found


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
