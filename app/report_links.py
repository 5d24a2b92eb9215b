"""Report links: signed URLs that need no API key, and that expire."""

import contextlib
import hashlib
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
        self._signers = [
            URLSafeSerializer(secret, salt=SALT, signer_kwargs={"digest_method": hashlib.sha256})
            for secret in (config.secret_key or generate_secret(), *config.secret_key_fallbacks)
        ]
        self._minutes = config.report_link_minutes

    def get_expiry_ms(self) -> int:
        """Return the time (epoch ms) at which a link that is built now expires."""
        return now_ms() + self._minutes * MS_PER_MINUTE

    def build_url(self, base: str, *link: Any) -> str:
        """Return the URL of a link at `base`. Its last part has only letters, digits, `-`, `_` and `.`."""
        return f"{base}{API}/report/{self._signers[0].dumps(ReportLink(*link))}"

    def verify(self, text: str) -> ReportLink | None:
        """Return the ReportLink of the last part of a URL, or None if it is forged or has expired."""
        for signer in self._signers:
            with contextlib.suppress(BadData):
                link = ReportLink(*signer.loads(text))
                # Different base64 texts can decode to the same bytes. Only the text that was issued is valid.
                return link if signer.dumps(link) == text and now_ms() < link.expires_at else None
        return None


def generate_secret() -> str:
    """Return a new random secret."""
    return secrets.token_hex(SECRET_BYTES)
