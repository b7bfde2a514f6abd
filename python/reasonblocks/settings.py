"""Server settings: arguments first, then environment variables."""

from __future__ import annotations

import logging
import os
import re
from urllib.parse import urlsplit

logger = logging.getLogger("reasonblocks")

BASE_URL_ENV = "REASONBLOCKS_BASE_URL"
TIMEOUT_ENV = "REASONBLOCKS_API_TIMEOUT"
DEFAULT_TIMEOUT_S = 5.0
"""Timeout of a request that the agent waits for."""

_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,1024}")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def checked_key(api_key: str) -> str:
    """Return the key, or raise `ValueError` if it is malformed. The message never contains the key."""
    if not isinstance(api_key, str) or (api_key and _KEY.fullmatch(api_key) is None):
        raise ValueError("invalid `api_key`: use up to 1024 letters, digits, `_`, `-` and `.`")
    return api_key


def masked_key(api_key: str) -> str:
    """Return the last characters of a key, for display."""
    return f"...{api_key[-4:]}" if len(api_key) > 8 else "..." if api_key else "none"


def resolved_base_url(base_url: str | None) -> str | None:
    """Return the server's URL without a trailing slash, or `None` to work in-process."""
    url = (base_url if base_url is not None else os.environ.get(BASE_URL_ENV, "")).strip().rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"invalid `base_url` ({url!r}): it must begin with http:// or https:// and name a host")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        logger.warning("the connection to %s is not encrypted; use https to protect the API key", parts.hostname)
    return url


def resolved_timeout(timeout: float | None) -> float:
    """Return the timeout of requests that the agent waits for, in seconds."""
    if timeout is not None:
        return timeout
    try:
        return float(os.environ[TIMEOUT_ENV])
    except (KeyError, ValueError):
        return DEFAULT_TIMEOUT_S
