"""How far `follow` has applied the change stream, and how far `mirror` has read the change feed of another service."""

from typing import NamedTuple

from app.store import Store
from schemas.identity import ids_of_fleet

# The name of the only token of `follow`.
FOLLOW = "follow"


class ResumeToken(NamedTuple):
    """A token, and the time (epoch ms) until which all changes are applied.

    For `follow` it is the resume token of the change stream in BSON, for `mirror` the cursor of a change feed.
    """

    token: bytes
    until_ms: int


def get_resume_token(store: Store, name: str) -> ResumeToken | None:
    """Return the resume token that is stored under a name."""
    stored = store.resume_tokens.find_one({"_id": name})
    return ResumeToken(stored["token"], stored["applied_until"]) if stored else None


def save_resume_token(store: Store, name: str, resume_token: ResumeToken) -> None:
    """Store the token under a name, after everything up to it was applied."""
    content = {"token": resume_token.token, "applied_until": resume_token.until_ms}
    store.resume_tokens.replace_one({"_id": name}, content, upsert=True)


def name_cursor(fleet: str, url: str) -> str:
    """Return the name of the cursor in the change feed of the service from which a fleet is copied."""
    return f"mirror/{fleet}/{url}"


def delete_cursors(store: Store, fleet: str) -> None:
    """Delete all cursors of a fleet."""
    store.resume_tokens.delete_many({"_id": ids_of_fleet(f"mirror/{fleet}")})
