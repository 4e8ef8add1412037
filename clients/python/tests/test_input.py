"""Durations that users give, and the errors that they get."""

from __future__ import annotations

import math
import pickle
from datetime import timedelta
from typing import Any, Callable

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import status_pb2

import ringfence
from ringfence import Client, InvalidInput, RingfenceError, aio, errors
from ringfence.v1 import error_pb2

from conftest import ROOT

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("length", [2, 2.0, timedelta(seconds=2)])
@pytest.mark.parametrize("kind", [Client, aio.Client])
def test_seconds_and_timedelta_are_alike(kind: Any, length: Any) -> None:
    client = kind.__new__(kind)  # without channels
    client._label = "label"
    lock = client.lock("key", lease=length, wait=length, hold_for=length)
    request = lock._terms.request(b"nonce", lock._wait)
    for field in (request.lease, request.wait, request.hold_for):
        assert field.ToNanoseconds() == 2_000_000_000


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("wait", -0.5, "0 to 315360000 s"),
        ("lease", math.nan, "0 to 315360000 s"),
        ("hold_for", math.inf, "0 to 315360000 s"),
        ("lease", timedelta(days=4000), "0 to 315360000 s"),
    ],
)
def test_a_bad_duration_is_named_with_its_limit(field: str, value: Any, limit: str) -> None:
    with Client(NOWHERE) as client:
        with pytest.raises(ValueError, match=f"^{field} is .* s, must be {limit}$") as caught:
            client.lock("key", **{field: value})
        assert isinstance(caught.value, InvalidInput)
        assert (caught.value.field, caught.value.limit) == (field, limit)
        assert not caught.value.may_have_taken_effect and not caught.value.retryable
        for value in ("10", True):
            with pytest.raises(TypeError, match=f"{field} is {value!r}, must be a timedelta or"):
                client.lock("key", **{field: value})


def test_every_duration_is_checked() -> None:
    with pytest.raises(InvalidInput, match=r"^timeout is 0 s, must be 0\.001 to 86400 s$"):
        Client(NOWHERE, timeout=0)
    with Client(NOWHERE, timeout=timedelta(seconds=1)) as client:
        account, latch = client.account("account"), client.latch("latch")
        calls: dict[str, Callable[[], object]] = {
            "timeout": lambda: latch.wait(-1),
            "wait": lambda: client.multi_lock(["key"], wait=-1),
            "skew": lambda: account.create("memory", skew=-1),
            "idempotency_for": lambda: account.create("memory", idempotency_for=-1),
            "idempotency_at_least": lambda: account.create("memory", idempotency_at_least=-1),
        }
        for field, call in calls.items():
            with pytest.raises(InvalidInput, match=f"^{field} is -1 s"):
                call()


class Failure(grpc.RpcError):
    """A failed call with details."""

    def __init__(self, detail: error_pb2.ErrorDetail) -> None:
        self._status = status_pb2.Status(details=[any_pb2.Any()])
        self._status.details[0].Pack(detail)

    def trailing_metadata(self) -> Any:
        return [("grpc-status-details-bin", self._status.SerializeToString())]

    def details(self) -> str:
        return "message"


#: Reasons that no caller handles by itself.
PLAIN = {"UNSPECIFIED", "FOREIGN", "INTERNAL", "RESIZE_REFUSED"}


@pytest.mark.parametrize("name", error_pb2.ErrorReason.keys())
def test_every_reason_has_a_class(name: str) -> None:
    detail = error_pb2.ErrorDetail(
        reason=error_pb2.ErrorReason.Value(name), effect=error_pb2.EFFECT_NONE
    )
    detail.retry_after.FromMilliseconds(1500)
    error = errors.from_rpc(Failure(detail))
    assert error.reason == name[len("ERROR_REASON_") :] and error.reason in errors._CLASSES
    assert (type(error) is RingfenceError) == (error.reason in PLAIN)
    assert getattr(ringfence, type(error).__name__) is type(error)
    assert not error.may_have_taken_effect and error.retry_after == 1.5
    again = pickle.loads(pickle.dumps(error))  # a task queue does that
    assert type(again) is type(error) and vars(again) == vars(error) and str(again) == "message"


def test_a_reason_of_a_later_release_has_none() -> None:
    error = errors.from_rpc(Failure(error_pb2.ErrorDetail(reason=9999)))
    assert type(error) is RingfenceError and error.reason == "UNSPECIFIED"
    assert error.may_have_taken_effect


def test_the_readme_has_every_class_with_its_reasons() -> None:
    rows = [
        line.split("|")[1:3]
        for line in (ROOT / "clients/python/README.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    told = {name.strip(" `"): set(reasons.replace(",", " ").split()) for name, reasons in rows}
    expected: dict[str, set[str]] = {}
    for reason, kind in errors._CLASSES.items():
        expected.setdefault(kind.__name__, set()).add(reason)
    assert told == expected
