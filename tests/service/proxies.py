"""A proxy on this machine between a service and PostgreSQL, which cuts connections when told."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

_NAME = ".s.PGSQL.5432"
_ANSWER, _END = b"COPY ", b"c\x00\x00\x00\x04"
"""What the server says once it has committed events, and what ends them on their way to it."""


class Proxy:
    """Listens on a socket in a folder, and forwards to the server that a URL names."""

    def __init__(self, address: str, folder: Path) -> None:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query))
        host, port = given["host"], given.get("port", "5432")
        if host.startswith("/"):
            self._target: object = f"{host}/.s.PGSQL.{port}"
        else:
            self._target = (host, int(port))
        self.url = f"postgresql://{parts.netloc}{parts.path}?host={folder}"
        self.cuts: list[tuple[bytes, bool]] = []
        """What ends a connection when it is seen, before it is forwarded, and whether in an answer;
        each does so once."""
        self.n_cut = 0
        self._is_down = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / _NAME))
        self._listening.listen()
        self._start(self._accept)

    def lose_the_answer(self) -> None:
        """Cut the connection after the next commit of events, before the service hears of it."""
        self.cuts.append((_ANSWER, True))

    def lose_the_events(self) -> None:
        """Cut the connection before the end of the next events has reached the server."""
        self.cuts.append((_END, False))

    def go_down(self) -> None:
        """Cut all connections and take no new ones."""
        self._is_down = True
        self.cut()

    def come_back(self) -> None:
        self._is_down = False

    def cut(self) -> None:
        """Cut all connections."""
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_down = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def _start(self, work, *given) -> None:
        threading.Thread(target=work, args=given, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._is_down:
                client.close()
                continue
            is_file = isinstance(self._target, str)
            server = socket.socket(socket.AF_UNIX if is_file else socket.AF_INET)
            server.connect(self._target)  # type: ignore[arg-type]
            with self._lock:
                self._open |= {client, server}
            self._start(self._forward, client, server, False)
            self._start(self._forward, server, client, True)

    def _forward(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while content := source.recv(2**16):
                found = [cut for cut in self.cuts if cut[1] == is_answer and cut[0] in content]
                if found:
                    self.cuts.remove(found[0])
                    self.n_cut += 1
                    break
                target.sendall(content)
        for each in (source, target):
            with self._lock:
                self._open.discard(each)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()
