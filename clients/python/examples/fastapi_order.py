"""A dependency of FastAPI that holds the lock of an order during a request.

    RINGFENCE=127.0.0.1:7420 uvicorn fastapi_order:app
"""

from __future__ import annotations

import contextlib
import os
from typing import Annotated, AsyncIterator

import ringfence
from fastapi import Depends, FastAPI, HTTPException, Request


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with ringfence.aio.Client(os.environ["RINGFENCE"].split(",")) as client:
        app.state.ringfence = client
        yield


app = FastAPI(lifespan=lifespan)


async def order_lock(order: int, request: Request) -> AsyncIterator[ringfence.aio.Guard]:
    """The lock of the order in the path. 423 if another request has it for more than half a second."""
    client: ringfence.aio.Client = request.app.state.ringfence
    try:
        guard = await client.lock(f"order/{order}", wait=0.5).acquire()
    except ringfence.NotAcquired:
        raise HTTPException(423, "another request changes the order") from None
    async with guard:
        yield guard


OrderLock = Annotated[ringfence.aio.Guard, Depends(order_lock)]


@app.post("/orders/{order}/charge")
async def charge(order: int, guard: OrderLock) -> dict[str, int]:
    # The database refuses a token smaller than one it has seen. `run_while_held` ends long work with the lock.
    return {"order": order, "token": guard.token}
