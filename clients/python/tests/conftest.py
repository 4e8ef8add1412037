"""Real coordinators, `ringfence serve`, on a real Redis server."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Callable, Iterator

import pytest

import ringfence

ROOT = pathlib.Path(__file__).parents[3]
BINARY = os.environ.get("RINGFENCE_BINARY", str(ROOT / "target/debug/ringfence"))
SECRET = "0123456789abcdef0123456789abcdef"

#: At `short_views`, in seconds: how long views of the topology last, and a lease that needs no
#: renewal at the shard during a test.
VIEW, LONG = 8, 240


#: How long a condition may take, in seconds. Nothing waits for so long unless it fails.
DEADLINE = 120.0


def eventually(holds: Callable[[], object], within: float = DEADLINE) -> None:
    """Waits for a condition, with a deadline."""
    ends = time.monotonic() + within
    while not holds():
        assert time.monotonic() < ends, "not in time"
        time.sleep(0.01)


class Redis:
    def __init__(self, directory: pathlib.Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}"
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(directory)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)

    def ringfence(self, *arguments: str) -> str:
        command = [BINARY, *arguments, "--redis", self.url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Coordinator:
    def __init__(
        self, redis: Redis, directory: pathlib.Path, more: str, listen: str = "127.0.0.1:0"
    ) -> None:
        settings = directory / "ringfence.toml"
        settings.write_text(f'listen = "{listen}"\n{more}\n[shards.a]\nurl = "{redis.url}"\n')
        command = [BINARY, "serve", "-c", str(settings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip().removeprefix("serves on ")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def slow_answers(address: str, delay: float) -> str:
    """The address of a relay for one connection, which passes answers on after a delay."""
    host, port = address.split(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, sink: socket.socket, delay: float) -> None:
        late: queue.Queue[tuple[float, bytes]] = queue.Queue()

        def write() -> None:
            with contextlib.suppress(OSError):
                while True:
                    due, data = late.get()
                    time.sleep(max(0.0, due - time.monotonic()))
                    sink.sendall(data)

        threading.Thread(target=write, daemon=True).start()
        while data := source.recv(1 << 16):
            late.put((time.monotonic() + delay, data))

    def serve() -> None:
        caller, _ = listener.accept()
        coordinator = socket.create_connection((host, int(port)))
        ways = ((caller, coordinator, 0.0), (coordinator, caller, delay))
        for way in ways:
            threading.Thread(target=copy, args=way, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{listener.getsockname()[1]}"


def holder(script: str, address: str, key: str) -> subprocess.Popen[str]:
    """A process that runs a script, which prints a line when it holds the lock. Waits for that line."""
    command = [sys.executable, "-c", script, address, key]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


class Relay:
    """Carries connections to a coordinator. The next `loses` answers are lost, each with its connection. Once `forgets`
    is set, present connections stay open and carry nothing."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._coordinator = (host, int(port))
        self._port = 0
        self.loses, self.forgets = 0, threading.Event()
        #: A caller has ended a connection that was forgotten.
        self.left = threading.Event()
        self.up()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def up(self) -> None:
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        self._sockets = [listener]
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def down(self) -> None:
        """Ends all connections, and refuses others."""
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = listener.accept()
                coordinator = socket.create_connection(self._coordinator)
                self._sockets += [caller, coordinator]
                for way in ((caller, coordinator, False), (coordinator, caller, True)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.forgets.is_set():
                    continue
                # Less only acknowledges.
                if answers and len(data) > 60 and self.loses > 0:
                    self.loses -= 1
                    break
                sink.sendall(data)
        if self.forgets.is_set():
            self.left.set()
            return
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def founded(directory: pathlib.Path, *terms: str) -> Iterator[Redis]:
    """A server with a topology of these terms."""
    server = Redis(directory)
    try:
        server.ringfence("ring", "init", "--servers-are-new", *terms)
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with founded(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def serve(redis: Redis, tmp_path: pathlib.Path) -> Iterator[Callable[..., Coordinator]]:
    """Starts a coordinator with more settings."""
    started: list[Coordinator] = []

    def start(more: str = "") -> Coordinator:
        directory = tmp_path / str(len(started))
        directory.mkdir()
        started.append(Coordinator(redis, directory, more))
        return started[-1]

    yield start
    for coordinator in started:
        coordinator.kill()


@pytest.fixture(scope="session")
def shared(redis: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    """A coordinator that no test harms."""
    coordinator = Coordinator(redis, tmp_path_factory.mktemp("shared"), "")
    yield coordinator
    coordinator.kill()


@pytest.fixture
def short_views(tmp_path: pathlib.Path) -> Iterator[tuple[Redis, Coordinator]]:
    """A coordinator whose views of the topology end after `VIEW`, and its server."""
    terms = f"--removal leased --view-lease {VIEW}s --max-lease {LONG}s"
    with founded(tmp_path, *terms.split()) as redis:
        coordinator = Coordinator(redis, tmp_path, "")
        yield redis, coordinator
        coordinator.kill()


@pytest.fixture
def client(shared: Coordinator) -> Iterator[ringfence.Client]:
    with ringfence.Client(shared.address) as client:
        yield client


_names = itertools.count()


@pytest.fixture
def key() -> str:
    """A key that no other test uses."""
    return f"test/{next(_names)}"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The files of a self-signed certificate for 127.0.0.1, and of its key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is missing")
    directory = tmp_path_factory.mktemp("tls")
    cert, secret = str(directory / "cert.pem"), str(directory / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-out", cert, "-keyout", secret]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return cert, secret
