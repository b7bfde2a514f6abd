"""JSON over HTTP with nothing but the standard library: one connection a thread, kept open."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from typing import Any
from urllib.parse import quote, urlsplit

from reasonblocks._engine import VERSION

REPLY_BYTES_MAX = 64 * 1024 * 1024


class HttpError(Exception):
    """A call that gave no answer one could use."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_final(self) -> bool:
        """Whether trying again would bring the same."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in {408, 429}


def segment(name: str) -> str:
    """Give a name as part of a path: what could end the path is escaped, slashes stay."""
    return quote(name, safe="/:@")


class Http:
    """One server, spoken to by any number of threads."""

    def __init__(self, base_url: str, api_key: str, timeout: float) -> None:
        parts = urlsplit(base_url)
        self.base_url = base_url
        self.timeout = timeout
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._path = parts.path.rstrip("/")
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"reasonblocks-rs/{VERSION}",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._mine = threading.local()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make one call and give the JSON of the answer; everything else is an `HttpError`."""
        data = None if body is None else json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "replace")
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is not None:
            try:
                return self._once(connection, method, path, data)
            except TimeoutError as error:
                self.close()
                raise HttpError(f"{method} {path}: {error}") from error
            except (OSError, http.client.HTTPException):
                self.close()  # the server had closed it meanwhile: once more, on a new one
        connection = self._mine.connection = self._connect()
        try:
            return self._once(connection, method, path, data)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise HttpError(f"{method} {path}: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if connection is not None:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)

    def _once(self, connection: http.client.HTTPConnection, method: str, path: str, data: bytes | None) -> Any:
        connection.request(method, self._path + path, body=data, headers=self._headers)
        reply = connection.getresponse()
        raw = reply.read(REPLY_BYTES_MAX)
        if not 200 <= reply.status < 300:
            raise HttpError(f"{method} {path}: the server answered {reply.status}", reply.status)
        try:
            return json.loads(raw) if raw else {}
        except ValueError as error:
            raise HttpError(f"{method} {path}: the answer is no JSON") from error
