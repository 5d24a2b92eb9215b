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


def test_a_command_that_waits_for_a_locked_fleet_says_so_once(run):
    _, printed = run(WRITE_CONFLICT, in_lock=True)
    assert printed == "Waiting for another command that writes to the fleet f1 ...\n"


def test_a_transaction_that_is_repeated_for_another_reason_is_not_reported_as_waiting(run):
    assert run(LIFETIME_EXCEEDED, in_lock=False)[1] == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (WRITE_CONFLICT, "another command writes to the fleet"),
        (LIFETIME_EXCEEDED, "each try took longer than transactionLifetimeLimitSeconds"),
    ],
)
def test_a_transaction_that_never_succeeds_ends_in_a_line_with_the_reason(run, code, reason):
    message, _ = run(code, in_lock=True)
    assert message.startswith("MongoDB aborted a transaction of the fleet f1 again and again: ")
    assert reason in message


def test_another_error_is_passed_on(store):
    def fail_for_good(session):
        raise OperationFailure("not allowed", 13)

    with pytest.raises(OperationFailure, match="not allowed"):
        run_transaction(store, "f1", fail_for_good)
