"""A service in a thread of this process, for clients to talk to."""

import threading
import time

import pytest
import uvicorn

from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build_later
from keyhole.service.settings import Settings
from keyhole.service.store.memory import MemoryStore


@pytest.fixture(scope="session")
def service_url():
    app = build_later(lambda: Desk(MemoryStore()), Settings())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://localhost:{port}"
    server.should_exit = True
    thread.join()
