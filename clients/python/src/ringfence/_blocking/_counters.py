"""Counters and latches of the blocking client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

from .. import _requests, _rules
from .._durations import Duration, seconds
from .._requests import Balance, Changed, Found, History, RequestId
from .._views import AccountState
from ..v1 import counter_pb2

if TYPE_CHECKING:
    from ._client import Client


class Account:
    """An account of the counters. Amounts are in the smallest unit. A change returns the balance after it.

    Each call repeats itself after a failure, as long as the client's ``timeout`` allows.
    """

    def __init__(self, client: Client, account: counter_pb2.Account) -> None:
        self._client = client
        self._account = account

    def _run(self, method: str, request: Any, within: Optional[float] = None) -> Any:
        return self._client._ask("CounterService", method, request, within)

    def create(
        self,
        durability: str,
        segments: int = 0,
        *,
        idempotency_for: Optional[Duration] = None,
        idempotency_at_least: Optional[Duration] = None,
        skew: Optional[Duration] = None,
        ids_max: int = 0,
        effects_max: Optional[int] = None,
        effects_for: Optional[Duration] = None,
        floor: int = 0,
        ceiling: Optional[int] = None,
        unit: str = "",
    ) -> None:
        """Creates it, or finds it with the same terms: :class:`AccountExists` with others.

        ``durability``
            What an acknowledged change survives: "memory" (nothing: a shard that restarts may have forgotten
            the last changes, and says so), "disk" (a restart), or "replicas:N" (the loss of the shard).
        ``segments``
            The number of segments, 1 to 1024. Default: 1. A hot account takes more changes with more segments.
        ``idempotency_for``
            How long the first answer to a request is remembered: at most 30 days. Default: 24 h.
        ``idempotency_at_least``
            How long a full segment remembers it. Default: 60 s.
        ``skew``
            How far the time of a request id may be ahead of the shard's clock: at most 1 h. Default: 10 s.
        ``ids_max``
            The number of answers that a segment remembers. Default: 8,000,000.
        ``effects_max``
            The number of effects that a segment keeps in its log. 0: no log. Default: 100,000.
        ``effects_for``
            How long an effect is kept: at most 10 years. Default: 7 days.
        ``floor``
            The least ledger balance: 0, or below 0 by a credit line, which can be spent.
        ``ceiling``
            The greatest ledger balance. Only with one segment. Deposits beyond are refused, and transfers return.
        ``unit``
            The code of the unit, at most 16 characters. There are no transfers between different units.
        """
        self._run(
            *_requests.create(
                self._account,
                durability,
                segments,
                idempotency_for,
                idempotency_at_least,
                skew,
                ids_max,
                effects_max,
                effects_for,
                floor,
                ceiling,
                unit,
            )
        )

    def deposit(self, request: RequestId, amount: int) -> Changed:
        """Adds an amount. A repeat of the request has no second effect."""
        return Changed.of(self._run(*_requests.deposit(self._account, request, amount)))

    def deduct(self, request: RequestId, amount: int) -> Changed:
        """Takes an amount. :class:`Insufficient` if the whole account has less."""
        return Changed.of(self._run(*_requests.deduct(self._account, request, amount)))

    def balance(self, exact: bool = False) -> Balance:
        """Its balance; with ``exact``, of one instant, which costs more."""
        return Balance.of(self._run(*_requests.balance(self._account, exact)))

    def reserve(self, request: RequestId, amount: int, deadline: float) -> Changed:
        """Sets an amount aside until ``deadline``, in seconds since 1970: the same in each repeat."""
        answer = self._run(*_requests.reserve(self._account, request, amount, deadline))
        return Changed.of(answer)

    def confirm(self, request: RequestId, amount: Optional[int] = None) -> Changed:
        """Spends what was reserved by that request, unless it has ended before; or this part of it, and the rest comes back.

        A repeat tells how the reservation ended, whatever the amount.
        """
        return Changed.of(self._run(*_requests.confirm(self._account, request, amount)))

    def capture(
        self, request: RequestId, capture: RequestId, legs: Mapping[str, int]
    ) -> Changed:
        """Pays accounts of the namespace from what was reserved by that request: each its amount, or none any; the rest
        comes back.

        They know their legs by the id ``capture``. If one refuses, the reservation is still held: another capture has
        another id.
        """
        message = _requests.capture_request(self._account, request, capture, legs)
        return Changed.of(self._run(*message))

    def cancel(self, request: RequestId) -> Changed:
        """Gives back what was reserved by that request, unless it has ended before."""
        return Changed.of(self._run(*_requests.cancel(self._account, request)))

    def transfer(self, request: RequestId, amount: int, to: str) -> Changed:
        """Moves an amount to another account of the namespace."""
        return Changed.of(self._run(*_requests.transfer(self._account, request, amount, to)))

    def transfer_legs(self, request: RequestId, legs: Mapping[str, int]) -> Changed:
        """Moves amounts to other accounts of the namespace: each gets its own, or none gets any."""
        return Changed.of(self._run(*_requests.transfer_legs(self._account, request, legs)))

    def find(self, request: RequestId) -> Found:
        """What was decided on a request, of whatever kind. Decides nothing."""
        return Found.of(self._run(*_requests.find(self._account, request)))

    def history(
        self, cursor: str = "", *, since: Optional[float] = None, limit: int = 0
    ) -> History:
        """Its log, oldest effects first: every change of its amounts, once.

        ``cursor``
            Where to go on: ``next`` of the history before.
        ``since``
            Without a cursor: effects of this time or later, in seconds since 1970.
        ``limit``
            The number of effects to return, about: at most 1,000, which is the default.
        """
        request = _requests.history(self._account, cursor, since, limit)
        return History.of(self._run(*request))

    def label(self, labels: Mapping[str, Optional[str]]) -> None:
        """Sets labels, and removes those that are None. The others stay. A repeat has no second effect."""
        self._run(*_requests.label(self._account, labels))

    def inspect(self) -> AccountState:
        """Its segments, unit, limits and labels. The API does not tell its other terms."""
        return AccountState.of(self._run(*_requests.get_account(self._account)))

    def resegment(self, segments: int) -> None:
        """Changes the number of segments, 1 to 1024, during normal use. Takes about 11 s."""
        self._run(*_requests.resegment(self._account, segments), _rules.WORK_WITHIN)

    def close_permanently(self) -> None:
        """Closes it: it takes no new money. It cannot be opened again. A repeat has no second effect."""
        self._run(*_requests.close_account(self._account), _rules.WORK_WITHIN)

    def delete(self) -> None:
        """Deletes it with its log: it must be closed and empty. A repeat is no error. Needs the role ``admin``.

        Its name can be used again; requests that it has decided are refused then.
        """
        self._run(*_requests.delete_account(self._account), _rules.WORK_WITHIN)


class Latch:
    """A countdown latch: closed until as many distinct requests as were set have counted it down.

    It is used once: it never closes again. Calls repeat themselves as those of :class:`Account` do.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def _run(self, method: str, request: Any) -> Any:
        return self._client._ask("LatchService", method, request)

    def set(self, count: int, durability: str) -> None:
        """Sets it, closed. To set it again to the same count has no effect. Durability: as of an account."""
        self._run(*_requests.set_latch(self._name, count, durability))

    def count_down(self, request: RequestId) -> None:
        """Counts down by one. A repeat of the request within 24 hours has no second effect."""
        self._run(*_requests.count_down(self._name, request))

    def remaining(self) -> int:
        """How often it is still to be counted down. 0: it is open."""
        return int((self._run(*_requests.get_latch(self._name))).remaining)

    def wait(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until it is open, for at most ``timeout``. Returns whether it is. It may be set meanwhile."""
        client, wait = self._client, seconds("timeout", timeout)
        many = len(client._coordinators)
        return bool(client._run(_rules.wait_latch(self._name, wait, client._timeout, many)))
