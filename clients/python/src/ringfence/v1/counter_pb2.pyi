import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_MEMORY: _ClassVar[Durability]
    DURABILITY_DISK: _ClassVar[Durability]
    DURABILITY_REPLICAS: _ClassVar[Durability]

class ReservationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESERVATION_STATE_UNSPECIFIED: _ClassVar[ReservationState]
    RESERVATION_STATE_HELD: _ClassVar[ReservationState]
    RESERVATION_STATE_CONFIRMED: _ClassVar[ReservationState]
    RESERVATION_STATE_CANCELLED: _ClassVar[ReservationState]
    RESERVATION_STATE_EXPIRED: _ClassVar[ReservationState]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_MEMORY: Durability
DURABILITY_DISK: Durability
DURABILITY_REPLICAS: Durability
RESERVATION_STATE_UNSPECIFIED: ReservationState
RESERVATION_STATE_HELD: ReservationState
RESERVATION_STATE_CONFIRMED: ReservationState
RESERVATION_STATE_CANCELLED: ReservationState
RESERVATION_STATE_EXPIRED: ReservationState

class Account(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class RequestId(_message.Message):
    __slots__ = ("created_at", "name")
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    created_at: _timestamp_pb2.Timestamp
    name: str
    def __init__(self, created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class CreateAccountRequest(_message.Message):
    __slots__ = ("account", "segments", "durability", "replicas", "idempotency_for", "idempotency_at_least", "skew", "ids_max")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_FOR_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    SKEW_FIELD_NUMBER: _ClassVar[int]
    IDS_MAX_FIELD_NUMBER: _ClassVar[int]
    account: Account
    segments: int
    durability: Durability
    replicas: int
    idempotency_for: _duration_pb2.Duration
    idempotency_at_least: _duration_pb2.Duration
    skew: _duration_pb2.Duration
    ids_max: int
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., segments: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., replicas: _Optional[int] = ..., idempotency_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., idempotency_at_least: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., skew: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ids_max: _Optional[int] = ...) -> None: ...

class CreateAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DepositRequest(_message.Message):
    __slots__ = ("account", "id", "amount")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ...) -> None: ...

class DepositResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeductRequest(_message.Message):
    __slots__ = ("account", "id", "amount")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ...) -> None: ...

class DeductResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBalanceRequest(_message.Message):
    __slots__ = ("account", "exact")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    exact: bool
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., exact: bool = ...) -> None: ...

class GetBalanceResponse(_message.Message):
    __slots__ = ("available", "in_flight", "held", "losses", "lost_segments", "counts_twice")
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    LOST_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_TWICE_FIELD_NUMBER: _ClassVar[int]
    available: int
    in_flight: int
    held: int
    losses: int
    lost_segments: int
    counts_twice: bool
    def __init__(self, available: _Optional[int] = ..., in_flight: _Optional[int] = ..., held: _Optional[int] = ..., losses: _Optional[int] = ..., lost_segments: _Optional[int] = ..., counts_twice: bool = ...) -> None: ...

class ReserveRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "deadline")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    deadline: _timestamp_pb2.Timestamp
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReserveResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ...) -> None: ...

class ConfirmRequest(_message.Message):
    __slots__ = ("account", "id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class ConfirmResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("account", "id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ...) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "to")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    to: str
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., to: _Optional[str] = ...) -> None: ...

class TransferResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
