"""Sessions of the dashboard: a signed cookie with the prefix of a key and an expiry."""

import hmac
import time
from http.cookies import CookieError, SimpleCookie

COOKIE = "keyhole_session"


class Sessions:
    """Sessions of the dashboard: signed cookies, so that the server keeps no state."""

    def __init__(self, secret: bytes, seconds: float, *, secure: bool) -> None:
        self._secret = secret
        self._seconds = seconds
        self._secure = secure

    def cookie(self, prefix: str) -> str:
        """Return the Set-Cookie header that logs a key in."""
        ends = int(time.time() + self._seconds)
        token = f"{prefix}.{ends}"
        return self._header(f"{token}.{self._sign('session', token)}", int(self._seconds))

    def end(self) -> str:
        """Return the Set-Cookie header that logs out."""
        return self._header("", 0)

    def prefix(self, fields: dict[bytes, bytes]) -> str | None:
        """Return the prefix of the logged-in key; None without a valid session."""
        token = self.token(fields)
        prefix, _, ends = token.rpartition(".")[0].partition(".")
        return prefix if token and ends.isdigit() and time.time() < int(ends) else None

    def token(self, fields: dict[bytes, bytes]) -> str:
        """Return the session token of a request; empty if its signature is invalid."""
        try:
            cookies = SimpleCookie(fields.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return ""
        value = cookies[COOKIE].value if COOKIE in cookies else ""
        token, _, signature = value.rpartition(".")
        matches = hmac.compare_digest(signature.encode(), self._sign("session", token).encode())
        return value if matches else ""

    def csrf(self, fields: dict[bytes, bytes]) -> str:
        """Return the CSRF token of this session's forms."""
        return self._sign("csrf", self.token(fields))

    def _header(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"

    def _sign(self, use: str, text: str) -> str:
        return hmac.new(self._secret, f"{use}:{text}".encode(), "sha256").hexdigest()
