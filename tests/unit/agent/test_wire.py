import os
import socket
import threading

import pytest

from mb_agent import wire
from mb_targets.model import Variant
from mb_targets.protocol import Launch


@pytest.fixture
def ends():
    first, second = (wire.Channel(end) for end in socket.socketpair())
    yield first, second
    first.close()
    second.close()


def received(channel):
    while (body := channel.receive()) is None:
        pass
    return wire.decode_request(body)


LAUNCH = Launch(
    order=("a", "n"),
    dtypes={"a": "f32", "n": "i32"},
    lanes={"a": 4, "n": 1},
    scalars={"n": 3},
    buffers={"a": 48},
    local_bytes={},
    written=("a",),
    global_size=(3,),
    local_size=None,
    ranges={"a": (0.0, 1.0)},
)


def test_request_arrives_as_it_was_sent(ends):
    sent = wire.Run(1, LAUNCH, wire.Shared(7, {"a": (0, 48)}), {"a": (0, 48)}, True)
    ends[0].send(sent)
    assert received(ends[1]) == sent


def test_message_larger_than_the_sockets_buffer_arrives_whole(ends):
    sent = wire.Build(1, Variant("x" * 5_000_000, "k"), ("-DA=1",), "/tmp")
    sender = threading.Thread(target=ends[0].send, args=(sent,))
    sender.start()
    assert received(ends[1]) == sent
    sender.join()


def test_messages_that_arrive_together_are_told_apart(ends):
    for handle in (1, 2, 3):
        ends[0].send(wire.Time(handle))
    assert [received(ends[1]).handle for _ in range(3)] == [1, 2, 3]


def test_descriptors_come_with_their_message(ends, tmp_path):
    (tmp_path / "file").write_text("contents")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    ends[0].send(wire.Time(1), (descriptor,))
    os.close(descriptor)
    received(ends[1])
    taken = ends[1].take_descriptor()
    assert os.read(taken, 100) == b"contents"
    os.close(taken)


def test_torn_message_waits_for_its_rest():
    raw, end = socket.socketpair()
    channel = wire.Channel(end)
    message = wire.encode(wire.Time(5))
    raw.sendall(message[:6])
    assert channel.receive() is None
    raw.sendall(message[6:])
    assert received(channel) == wire.Time(5)
    raw.close()
    channel.close()


def test_closed_end_is_an_end_of_file(ends):
    ends[0].close()
    with pytest.raises(EOFError):
        ends[1].receive()


def test_absurd_length_ends_the_channel():
    raw, end = socket.socketpair()
    channel = wire.Channel(end)
    raw.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(EOFError):
        channel.receive()
    raw.close()
    channel.close()


def test_end_that_does_not_read_stops_the_sender(ends):
    with pytest.raises(TimeoutError):
        ends[0].send(wire.Build(1, Variant("x" * 5_000_000, "k"), (), ""), limit=0.1)
