"""A temporary PostgreSQL, `rb serve` nodes that share it, and a network link between them that can be cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from rb_server import UNLIMITED, Server, free_port


def programs() -> Path:
    """Folder of the newest installed PostgreSQL programs."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    initdb = str(versions[-1]) if versions else shutil.which("initdb")
    assert initdb, "PostgreSQL is not installed; run `cargo xtask test tools`"
    return Path(initdb).parent


class Link:
    """A network namespace for the database. A cut link drops packets silently."""

    def __init__(self) -> None:
        self.name = f"rb{os.getpid()}"
        self.near, self.far = f"{self.name}a", f"{self.name}b"
        net = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
        self.address = f"{net}.2"
        self.ip("netns", "add", self.name)
        try:
            self.ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.name)
            self.ip("address", "add", f"{net}.1/24", "dev", self.near)
            self.ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", self.far)
            for inside in ([], ["-n", self.name]):
                self.ip(*inside, "link", "set", "lo" if inside else self.near, "up")
            self.ip("-n", self.name, "link", "set", self.far, "up")
        except PermissionError:
            self.remove()
            raise

    @staticmethod
    def ip(*args: str) -> None:
        try:
            done = subprocess.run(["ip", *args], capture_output=True, text=True)
        except FileNotFoundError as error:
            raise PermissionError(str(error)) from None
        if done.returncode != 0:
            raise PermissionError(f"ip {' '.join(args)}: {done.stderr}")

    def cut(self) -> None:
        self.ip("link", "set", self.near, "down")

    def mend(self) -> None:
        self.ip("link", "set", self.near, "up")

    def remove(self) -> None:
        self.ip("netns", "delete", self.name)


class Postgres:
    """A PostgreSQL server on loopback or behind a link."""

    def __init__(self, link: Link | None = None) -> None:
        self.link = link
        self.host = link.address if link else "127.0.0.1"
        self.programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="rb-nodes-", dir="/tmp"))
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "--auth=trust", "--username=rb", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync",
                 "--pgdata", str(self.folder / "data"))
        with (self.folder / "data/pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")
        self.start()

    def command(self, program: str, *args: str) -> list[str]:
        # PostgreSQL refuses to run as root; use the user of the package.
        before = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        there = ["ip", "netns", "exec", self.link.name] if self.link else []
        return [*there, *before, str(self.programs / program), *args]

    def run(self, program: str, *args: str) -> None:
        done = subprocess.run(self.command(program, *args), cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        assert done.returncode == 0, f"{program}: {done.stderr}"

    def start(self) -> None:
        options = (f"-c listen_addresses={self.host} -c port={self.port} -c unix_socket_directories='{self.folder}' "
                   "-c max_connections=200")
        self.run("pg_ctl", "--wait", "--silent", "--timeout=120", "--pgdata", str(self.folder / "data"), "--log",
                 str(self.folder / "log"), "--options", options, "start")

    def kill(self) -> None:
        pid = int((self.folder / "data/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        time.sleep(2)  # a new server starts only after the child processes have exited

    def stop(self) -> None:
        subprocess.run(self.command("pg_ctl", "--silent", "--pgdata", str(self.folder / "data"), "--mode", "immediate",
                                    "stop"), cwd=self.folder, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self, name: str) -> str:
        self.run("createdb", "--host", str(self.folder), "--port", str(self.port), "--username=rb", name)
        return f"postgres://rb@{self.host}:{self.port}/{name}?sslmode=disable"


class Wire:
    """Forwards bytes to a port. A cut wire stops forwarding without closing the connections."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.is_whole = threading.Event()
        self.is_whole.set()
        self.sockets: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                self.is_whole.wait()
                other.sendall(data)
        except OSError:
            pass
        finally:
            one.close()
            other.close()

    def cut(self) -> None:
        self.is_whole.clear()

    def mend(self) -> None:
        """Drops the open connections and accepts new ones."""
        sockets, self.sockets = self.sockets, []
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.is_whole.set()


class Node(Server):
    """A server on a shared database, or on SQLite without a URL."""

    def __init__(self, url: str, data_dir: Path, **environment: str) -> None:
        super().__init__(data_dir, **UNLIMITED, **environment, **({"RB_DATABASE_URL": url} if url else {}))

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        raw = None if body is None else json.dumps(body).encode()
        status, said, headers = self.send(method, path, raw, content_type="application/json")
        return status, json.loads(said) if headers.get_content_type() == "application/json" else {}
