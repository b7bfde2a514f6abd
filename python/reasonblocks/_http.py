"""JSON over HTTP with the standard library: one keep-alive connection per thread."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from typing import Any
from urllib.parse import quote, urlsplit

from reasonblocks._engine import VERSION

MAX_RESPONSE_BYTES = 64 * 1024 * 1024


class HttpError(Exception):
    """A request that failed, or a response that cannot be used."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_final(self) -> bool:
        """True if a retry would fail in the same way."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in {408, 429}


def segment(name: str) -> str:
    """Escape a name for use in a path; slashes are kept."""
    return quote(name, safe="/:@")


class Http:
    """A connection to one server; safe for use by several threads."""

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
        self._local = threading.local()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded JSON response; every failure raises `HttpError`."""
        data = None if body is None else json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "replace")
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None:
            try:
                return self._send(connection, method, path, data)
            except TimeoutError as error:
                self.close()
                raise HttpError(f"{method} {path} failed: {error}") from error
            except (OSError, http.client.HTTPException):
                self.close()  # the server closed the idle connection: retry on a new one
        connection = self._local.connection = self._connect()
        try:
            return self._send(connection, method, path, data)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise HttpError(f"{method} {path} failed: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)

    def _send(self, connection: http.client.HTTPConnection, method: str, path: str, data: bytes | None) -> Any:
        connection.request(method, self._path + path, body=data, headers=self._headers)
        response = connection.getresponse()
        raw = response.read(MAX_RESPONSE_BYTES)
        if not 200 <= response.status < 300:
            raise HttpError(f"{method} {path} failed: status {response.status}", response.status)
        try:
            return json.loads(raw) if raw else {}
        except ValueError as error:
            raise HttpError(f"{method} {path} failed: the response is not JSON") from error
