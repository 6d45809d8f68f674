import os
import signal
import subprocess
import sys
import threading

import pytest

from mb_agent.queue_lock import DeviceBusy, hold

HOLDER = """
import sys, pathlib, time
from mb_agent.queue_lock import hold
with hold(pathlib.Path(sys.argv[1]), "dev", lambda before: print("before", before, flush=True)):
    print("held", flush=True)
    time.sleep(600)
"""


def holder(folder):
    return subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def busy(tmp_path):
    process = holder(tmp_path)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_free_device_is_held_without_a_word(tmp_path):
    said = []
    with hold(tmp_path, "dev", said.append):
        assert said == []


def test_a_held_device_is_waited_for_and_the_place_is_said(tmp_path, busy):
    said = []
    with pytest.raises(DeviceBusy, match="1 other job"), hold(tmp_path, "dev", said.append, limit=0.5):
        pass
    assert said == [1]


def test_the_third_in_the_queue_hears_of_two_before(tmp_path, busy):
    second = holder(tmp_path)
    assert second.stdout.readline() == "before 1\n"
    said = []
    with pytest.raises(DeviceBusy), hold(tmp_path, "dev", said.append, limit=0.5):
        pass
    second.kill()
    second.communicate()
    assert said == [2]


def test_a_killed_holder_frees_the_device(tmp_path, busy):
    taken = threading.Event()

    def wait():
        with hold(tmp_path, "dev", lambda before: None, limit=20):
            taken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    os.kill(busy.pid, signal.SIGKILL)
    thread.join(20)
    assert taken.is_set()


def test_another_device_is_not_waited_for(tmp_path, busy):
    with hold(tmp_path, "other", lambda before: pytest.fail("waited")):
        pass


def test_nothing_is_left_behind(tmp_path):
    with hold(tmp_path, "dev", lambda before: None):
        pass
    assert list(tmp_path.glob("*.ticket")) == []
