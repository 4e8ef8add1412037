"""Counters and latches of the client for asyncio."""

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
    """An account of the counters: see :class:`ringfence.Account`."""

    def __init__(self, client: Client, account: counter_pb2.Account) -> None:
        self._client = client
        self._account = account

    async def _run(self, method: str, request: Any, within: Optional[float] = None) -> Any:
        return await self._client._ask("CounterService", method, request, within)

    async def create(
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
        """Creates it, or finds it with the same terms: see :meth:`ringfence.Account.create`."""
        await self._run(
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

    async def deposit(self, request: RequestId, amount: int) -> Changed:
        """Adds an amount. A repeat of the request has no second effect."""
        return Changed.of(await self._run(*_requests.deposit(self._account, request, amount)))

    async def deduct(self, request: RequestId, amount: int) -> Changed:
        """Takes an amount. :class:`ringfence.Insufficient` if the whole account has less."""
        return Changed.of(await self._run(*_requests.deduct(self._account, request, amount)))

    async def balance(self, exact: bool = False) -> Balance:
        """Its balance; with ``exact``, of one instant, which costs more."""
        return Balance.of(await self._run(*_requests.balance(self._account, exact)))

    async def reserve(self, request: RequestId, amount: int, deadline: float) -> Changed:
        """Sets an amount aside until ``deadline``, in seconds since 1970: the same in each repeat."""
        answer = await self._run(*_requests.reserve(self._account, request, amount, deadline))
        return Changed.of(answer)

    async def confirm(self, request: RequestId, amount: Optional[int] = None) -> Changed:
        """Spends what was reserved by that request, unless it has ended before; or this part of it, and the rest comes back.

        A repeat tells how the reservation ended, whatever the amount.
        """
        return Changed.of(await self._run(*_requests.confirm(self._account, request, amount)))

    async def capture(
        self, request: RequestId, capture: RequestId, legs: Mapping[str, int]
    ) -> Changed:
        """Pays accounts of the namespace from what was reserved by that request: each its amount, or none any; the rest
        comes back.

        They know their legs by the id ``capture``. If one refuses, the reservation is still held: another capture has
        another id.
        """
        message = _requests.capture_request(self._account, request, capture, legs)
        return Changed.of(await self._run(*message))

    async def cancel(self, request: RequestId) -> Changed:
        """Gives back what was reserved by that request, unless it has ended before."""
        return Changed.of(await self._run(*_requests.cancel(self._account, request)))

    async def transfer(self, request: RequestId, amount: int, to: str) -> Changed:
        """Moves an amount to another account of the namespace."""
        return Changed.of(await self._run(*_requests.transfer(self._account, request, amount, to)))

    async def transfer_legs(self, request: RequestId, legs: Mapping[str, int]) -> Changed:
        """Moves amounts to other accounts of the namespace: each gets its own, or none gets any."""
        return Changed.of(await self._run(*_requests.transfer_legs(self._account, request, legs)))

    async def find(self, request: RequestId) -> Found:
        """What was decided on a request, of whatever kind. Decides nothing."""
        return Found.of(await self._run(*_requests.find(self._account, request)))

    async def history(
        self, cursor: str = "", *, since: Optional[float] = None, limit: int = 0
    ) -> History:
        """Its log, oldest effects first: see :meth:`ringfence.Account.history`."""
        request = _requests.history(self._account, cursor, since, limit)
        return History.of(await self._run(*request))

    async def label(self, labels: Mapping[str, Optional[str]]) -> None:
        """Sets labels, and removes those that are None. The others stay. A repeat has no second effect."""
        await self._run(*_requests.label(self._account, labels))

    async def inspect(self) -> AccountState:
        """Its segments, unit, limits and labels. The API does not tell its other terms."""
        return AccountState.of(await self._run(*_requests.get_account(self._account)))

    async def resegment(self, segments: int) -> None:
        """Changes the number of segments, 1 to 1024, during normal use. Takes about 11 s."""
        await self._run(*_requests.resegment(self._account, segments), _rules.WORK_WITHIN)

    async def close_permanently(self) -> None:
        """Closes it: it takes no new money. It cannot be opened again. A repeat has no second effect."""
        await self._run(*_requests.close_account(self._account), _rules.WORK_WITHIN)

    async def delete(self) -> None:
        """Deletes it with its log: it must be closed and empty. A repeat is no error. Needs the role ``admin``.

        Its name can be used again; requests that it has decided are refused then.
        """
        await self._run(*_requests.delete_account(self._account), _rules.WORK_WITHIN)


class Latch:
    """A countdown latch: see :class:`ringfence.Latch`."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def _run(self, method: str, request: Any) -> Any:
        return await self._client._ask("LatchService", method, request)

    async def set(self, count: int, durability: str) -> None:
        """Sets it, closed. To set it again to the same count has no effect. Durability: as of an account."""
        await self._run(*_requests.set_latch(self._name, count, durability))

    async def count_down(self, request: RequestId) -> None:
        """Counts down by one. A repeat of the request within 24 hours has no second effect."""
        await self._run(*_requests.count_down(self._name, request))

    async def remaining(self) -> int:
        """How often it is still to be counted down. 0: it is open."""
        return int((await self._run(*_requests.get_latch(self._name))).remaining)

    async def wait(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until it is open, for at most ``timeout``. Returns whether it is. It may be set meanwhile."""
        client, wait = self._client, seconds("timeout", timeout)
        many = len(client._coordinators)
        return bool(await client._run(_rules.wait_latch(self._name, wait, client._timeout, many)))
