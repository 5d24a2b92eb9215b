"""Report links: signed URLs that need no API key, and that expire."""

import hashlib
import hmac
import secrets
from typing import Any, NamedTuple

from itsdangerous import BadData, URLSafeSerializer

from app.config import API, Config
from schemas.periods import LongPeriodName, now_ms

MS_PER_MINUTE = 60_000
# itsdangerous derives a separate signing key for each salt.
SALT = "report"
# The length of a generated secret: 256 bits.
SECRET_BYTES = 32


class ReportLink(NamedTuple):
    """The content of a link: a file of a fleet's report, the API key that requested it, and its expiry (epoch ms).

    `report_date` and `period` are those of its ReportWindow.
    """

    fleet: str
    report_date: str
    period: LongPeriodName
    file: str
    key_id: str
    expires_at: int


class ReportLinkSigner:
    """Signs links with SECRET_KEY and verifies them, also with SECRET_KEY_FALLBACKS."""

    def __init__(self, config: Config) -> None:
        secret_key = config.secret_key or generate_secret()
        self._signers = [_signer(secret) for secret in (secret_key, *config.secret_key_fallbacks)]
        self._minutes = config.report_link_minutes

    def get_expiry_ms(self) -> int:
        """Return the time (epoch ms) at which a link that is built now expires."""
        return now_ms() + self._minutes * MS_PER_MINUTE

    def build_url(self, base: str, *link: Any) -> str:
        """Return the URL of a link at `base`. Its last part has only letters, digits, `-`, `_` and `.`."""
        return f"{base}{API}/report/{self._signers[0].dumps(ReportLink(*link))}"

    def verify(self, text: str) -> ReportLink | None:
        """Return the ReportLink of the last part of a URL, or None if it is forged or has expired."""
        return next(filter(None, (_verify(signer, text) for signer in self._signers)), None)


def generate_secret() -> str:
    """Return a new random secret."""
    return secrets.token_hex(SECRET_BYTES)


def _signer(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt=SALT, signer_kwargs={"digest_method": hashlib.sha256})


def _verify(signer: URLSafeSerializer, text: str) -> ReportLink | None:
    try:
        link = ReportLink(*signer.loads(text))
    except BadData:
        return None
    # Different base64 texts can decode to the same bytes. Only the text that was issued is valid.
    if not hmac.compare_digest(str(signer.dumps(link)).encode(), text.encode()):
        return None
    return link if now_ms() < link.expires_at else None
