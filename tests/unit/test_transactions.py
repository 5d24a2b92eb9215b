"""scripts/mongodb/transactions.py: what a command prints when MongoDB aborts its transactions."""

import contextlib
from types import SimpleNamespace

import click
import pytest
from pymongo.errors import OperationFailure

from scripts.mongodb.transactions import TRANSIENT, WRITE_CONFLICT, transaction

LIFETIME_EXCEEDED = 290
WAITING = "Waiting for another command that writes to f1, for two minutes at most ...\n"


def run_four_times(run):
    """Run a transaction as PyMongo does for two minutes."""
    for _ in range(3):
        with pytest.raises(OperationFailure):
            run(None)
    return run(None)


@pytest.fixture
def repeating_store():
    """A store whose sessions run a transaction four times."""
    session = SimpleNamespace(with_transaction=run_four_times)
    session.bind = lambda: contextlib.nullcontext(session)
    client = SimpleNamespace(start_session=lambda: session)
    return SimpleNamespace(db=SimpleNamespace(client=client))


@pytest.mark.parametrize(
    ("code", "printed", "reason"),
    [
        (WRITE_CONFLICT, WAITING, "another command writes"),
        (LIFETIME_EXCEEDED, "", "each try took longer than transactionLifetimeLimitSeconds"),
    ],
)
def test_a_transaction_that_never_succeeds_ends_in_a_line(repeating_store, monkeypatch, capsys, code, printed, reason):
    def fail(*_):
        raise OperationFailure("PlanExecutor error during aggregation", code, {"errorLabels": [TRANSIENT]})

    monkeypatch.setattr("scripts.mongodb.transactions.lock_fleet", fail)
    monkeypatch.setattr("scripts.mongodb.transactions.MESSAGE_AFTER_SECONDS", -1)
    message = f"^MongoDB aborted a transaction of the fleet f1 again and again: {reason}"
    with pytest.raises(click.ClickException, match=message):
        transaction(fail)(repeating_store, "f1")
    assert capsys.readouterr().err == printed
