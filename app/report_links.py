"""Links to reports: signed, so that whoever holds one needs no key, and good for a while."""

import hashlib
import hmac
import secrets
import time
from typing import Any, NamedTuple

from itsdangerous import BadData, URLSafeSerializer

from app.config import API, Config

MS_PER_MINUTE = 60_000
# A key of its own for each purpose (itsdangerous).
SALT = "report"
# Of a key that is made up: 256 bits.
SECRET_BYTES = 32


class ReportLink(NamedTuple):
    """What a link stands for: a file of a fleet's report, for whom, and until when (epoch ms)."""

    fleet: str
    report_date: str
    file: str
    key_id: str
    expires_at: int


class ReportLinkSigner:
    """Signs links with the service's secret, and reads them back."""

    def __init__(self, config: Config) -> None:
        newest = config.secret_key or generate_secret()
        self._signers = [_signer(secret) for secret in (newest, *config.secret_key_fallbacks)]
        self._minutes = config.report_link_minutes

    def get_expiry_ms(self) -> int:
        """Return until when (epoch ms) a link that is made by now is good."""
        return int(time.time() * 1000) + self._minutes * MS_PER_MINUTE

    def build_url(self, base: str, *link: Any) -> str:
        """Return the URL of a Link to the service at `base`; it ends with letters, digits, `-`, `_` and `.`."""
        return f"{base}{API}/report/{self._signers[0].dumps(ReportLink(*link))}"

    def verify(self, text: str) -> ReportLink | None:
        """Return what a link stands for, or None where it was not made here or is good no more."""
        return next(filter(None, (_verify(signer, text) for signer in self._signers)), None)


def generate_secret() -> str:
    """Return a secret that nobody knows."""
    return secrets.token_hex(SECRET_BYTES)


def _signer(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt=SALT, signer_kwargs={"digest_method": hashlib.sha256})


def _verify(signer: URLSafeSerializer, text: str) -> ReportLink | None:
    try:
        link = ReportLink(*signer.loads(text))
    except BadData:
        return None
    # Base64 can be spelled in several ways; a link, in the one in which it was made.
    if not hmac.compare_digest(str(signer.dumps(link)).encode(), text.encode()):
        return None
    return link if time.time() * 1000 < link.expires_at else None
