"""scripts/materialize/transactions.py: what a command prints when MongoDB aborts its transactions."""

import click
import pytest
from pymongo.errors import OperationFailure

from scripts.materialize.transactions import TRANSIENT, WRITE_CONFLICT, run_transaction

LIFETIME_EXCEEDED = 290


class Repeating:
    """A store that runs a transaction four times, as PyMongo does for two minutes."""

    def transaction(self, run):
        for _ in range(3):
            with pytest.raises(OperationFailure):
                run(None)
        return run(None)


def fail(code):
    raise OperationFailure("PlanExecutor error during aggregation", code, {"errorLabels": [TRANSIENT]})


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a transaction that fails with a code, in the lock or after it; return the error and what was printed."""

    def run(code, *, in_lock):
        lock = (lambda *_: fail(code)) if in_lock else (lambda *_: None)
        monkeypatch.setattr("scripts.materialize.transactions.lock_fleet", lock)
        monkeypatch.setattr("scripts.materialize.transactions.MESSAGE_AFTER_SECONDS", -1)
        with pytest.raises(click.ClickException) as caught:
            run_transaction(Repeating(), "f1", lambda _: fail(code))
        return caught.value.message, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("code", "in_lock", "printed", "reason"),
    [
        (
            WRITE_CONFLICT,
            True,
            "Waiting for another command that writes to the fleet f1 ...\n",
            "another command writes",
        ),
        (LIFETIME_EXCEEDED, False, "", "each try took longer than transactionLifetimeLimitSeconds"),
    ],
)
def test_a_transaction_that_is_aborted_again_and_again_ends_in_a_line(run, code, in_lock, printed, reason):
    message, waiting = run(code, in_lock=in_lock)
    assert message.startswith(f"MongoDB aborted a transaction of the fleet f1 again and again: {reason}")
    assert waiting == printed


def test_another_error_is_passed_on(store):
    def fail_for_good(session):
        raise OperationFailure("not allowed", 13)

    with pytest.raises(OperationFailure, match="not allowed"):
        run_transaction(store, "f1", fail_for_good)
