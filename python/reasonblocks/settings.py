"""Where the server is and how to speak to it: arguments first, then the environment."""

from __future__ import annotations

import logging
import os
import re
from urllib.parse import urlsplit

logger = logging.getLogger("reasonblocks")

BASE_URL_ENV = "REASONBLOCKS_BASE_URL"
TIMEOUT_ENV = "REASONBLOCKS_API_TIMEOUT"
TIMEOUT_S = 5.0
"""How long a call that the agent waits for may take."""

_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,1024}")
_HERE = {"localhost", "127.0.0.1", "::1"}


def checked_key(api_key: str) -> str:
    """Refuse a key that no server could have issued; the key itself is never shown."""
    if not isinstance(api_key, str) or (api_key and _KEY.fullmatch(api_key) is None):
        raise ValueError("`api_key` may hold letters, digits, `_`, `-` and `.`, at most 1024 of them")
    return api_key


def masked_key(api_key: str) -> str:
    """Tell keys apart without showing one."""
    return f"...{api_key[-4:]}" if len(api_key) > 8 else "..." if api_key else "none"


def resolved_base_url(base_url: str | None) -> str | None:
    """Give the server's address without a trailing slash; none means that everything happens in this process."""
    url = (base_url if base_url is not None else os.environ.get(BASE_URL_ENV, "")).strip().rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"the server's address ({url!r}) must begin with http:// or https:// and name a host")
    if parts.scheme == "http" and parts.hostname not in _HERE:
        logger.warning("%s is not encrypted: the API key can be read on the way", parts.hostname)
    return url


def resolved_timeout(timeout: float | None) -> float:
    """Give how long the agent waits for the server."""
    if timeout is not None:
        return timeout
    try:
        return float(os.environ[TIMEOUT_ENV])
    except (KeyError, ValueError):
        return TIMEOUT_S
