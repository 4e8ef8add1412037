import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import error_pb2 as _error_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
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

class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_UNSPECIFIED: _ClassVar[Decision]
    DECISION_DONE: _ClassVar[Decision]
    DECISION_INSUFFICIENT: _ClassVar[Decision]
    DECISION_HELD: _ClassVar[Decision]
    DECISION_CONFIRMED: _ClassVar[Decision]
    DECISION_CANCELLED: _ClassVar[Decision]
    DECISION_EXPIRED: _ClassVar[Decision]
    DECISION_SENT: _ClassVar[Decision]
    DECISION_DELIVERED: _ClassVar[Decision]
    DECISION_RETURNED: _ClassVar[Decision]
    DECISION_NEVER_SEEN: _ClassVar[Decision]
    DECISION_FORGOTTEN: _ClassVar[Decision]
    DECISION_COMMITTED: _ClassVar[Decision]

class EffectKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_KIND_UNSPECIFIED: _ClassVar[EffectKind]
    EFFECT_KIND_DEPOSITED: _ClassVar[EffectKind]
    EFFECT_KIND_DEDUCTED: _ClassVar[EffectKind]
    EFFECT_KIND_RESERVED: _ClassVar[EffectKind]
    EFFECT_KIND_CONFIRMED: _ClassVar[EffectKind]
    EFFECT_KIND_CANCELLED: _ClassVar[EffectKind]
    EFFECT_KIND_EXPIRED: _ClassVar[EffectKind]
    EFFECT_KIND_SENT: _ClassVar[EffectKind]
    EFFECT_KIND_DELIVERED: _ClassVar[EffectKind]
    EFFECT_KIND_RETURNED: _ClassVar[EffectKind]
    EFFECT_KIND_RECEIVED: _ClassVar[EffectKind]
    EFFECT_KIND_LENT: _ClassVar[EffectKind]
    EFFECT_KIND_LANDED: _ClassVar[EffectKind]

class AccountCondition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCOUNT_CONDITION_UNSPECIFIED: _ClassVar[AccountCondition]
    ACCOUNT_CONDITION_IN_DOUBT: _ClassVar[AccountCondition]
    ACCOUNT_CONDITION_LOST: _ClassVar[AccountCondition]
    ACCOUNT_CONDITION_HELD: _ClassVar[AccountCondition]
    ACCOUNT_CONDITION_UNFINISHED: _ClassVar[AccountCondition]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_MEMORY: Durability
DURABILITY_DISK: Durability
DURABILITY_REPLICAS: Durability
RESERVATION_STATE_UNSPECIFIED: ReservationState
RESERVATION_STATE_HELD: ReservationState
RESERVATION_STATE_CONFIRMED: ReservationState
RESERVATION_STATE_CANCELLED: ReservationState
RESERVATION_STATE_EXPIRED: ReservationState
DECISION_UNSPECIFIED: Decision
DECISION_DONE: Decision
DECISION_INSUFFICIENT: Decision
DECISION_HELD: Decision
DECISION_CONFIRMED: Decision
DECISION_CANCELLED: Decision
DECISION_EXPIRED: Decision
DECISION_SENT: Decision
DECISION_DELIVERED: Decision
DECISION_RETURNED: Decision
DECISION_NEVER_SEEN: Decision
DECISION_FORGOTTEN: Decision
DECISION_COMMITTED: Decision
EFFECT_KIND_UNSPECIFIED: EffectKind
EFFECT_KIND_DEPOSITED: EffectKind
EFFECT_KIND_DEDUCTED: EffectKind
EFFECT_KIND_RESERVED: EffectKind
EFFECT_KIND_CONFIRMED: EffectKind
EFFECT_KIND_CANCELLED: EffectKind
EFFECT_KIND_EXPIRED: EffectKind
EFFECT_KIND_SENT: EffectKind
EFFECT_KIND_DELIVERED: EffectKind
EFFECT_KIND_RETURNED: EffectKind
EFFECT_KIND_RECEIVED: EffectKind
EFFECT_KIND_LENT: EffectKind
EFFECT_KIND_LANDED: EffectKind
ACCOUNT_CONDITION_UNSPECIFIED: AccountCondition
ACCOUNT_CONDITION_IN_DOUBT: AccountCondition
ACCOUNT_CONDITION_LOST: AccountCondition
ACCOUNT_CONDITION_HELD: AccountCondition
ACCOUNT_CONDITION_UNFINISHED: AccountCondition

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
    __slots__ = ("account", "segments", "durability", "replicas", "idempotency_for", "idempotency_at_least", "skew", "ids_max", "effects_max", "effects_for", "floor", "ceiling", "unit")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_FOR_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    SKEW_FIELD_NUMBER: _ClassVar[int]
    IDS_MAX_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_MAX_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_FOR_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    segments: int
    durability: Durability
    replicas: int
    idempotency_for: _duration_pb2.Duration
    idempotency_at_least: _duration_pb2.Duration
    skew: _duration_pb2.Duration
    ids_max: int
    effects_max: int
    effects_for: _duration_pb2.Duration
    floor: int
    ceiling: int
    unit: str
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., segments: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., replicas: _Optional[int] = ..., idempotency_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., idempotency_at_least: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., skew: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ids_max: _Optional[int] = ..., effects_max: _Optional[int] = ..., effects_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., floor: _Optional[int] = ..., ceiling: _Optional[int] = ..., unit: _Optional[str] = ...) -> None: ...

class CreateAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DepositRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "reference")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    reference: bytes
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., reference: _Optional[bytes] = ...) -> None: ...

class DepositResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceAfter
    def __init__(self, balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class BalanceAfter(_message.Message):
    __slots__ = ("ledger", "available", "held")
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    ledger: int
    available: int
    held: int
    def __init__(self, ledger: _Optional[int] = ..., available: _Optional[int] = ..., held: _Optional[int] = ...) -> None: ...

class DeductRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "reference")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    reference: bytes
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., reference: _Optional[bytes] = ...) -> None: ...

class DeductResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceAfter
    def __init__(self, balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class GetBalanceRequest(_message.Message):
    __slots__ = ("account", "exact")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    exact: bool
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., exact: bool = ...) -> None: ...

class GetBalanceResponse(_message.Message):
    __slots__ = ("available", "in_flight", "held", "losses", "lost_segments", "counts_twice", "ledger")
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    LOST_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_TWICE_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    available: int
    in_flight: int
    held: int
    losses: int
    lost_segments: int
    counts_twice: bool
    ledger: int
    def __init__(self, available: _Optional[int] = ..., in_flight: _Optional[int] = ..., held: _Optional[int] = ..., losses: _Optional[int] = ..., lost_segments: _Optional[int] = ..., counts_twice: bool = ..., ledger: _Optional[int] = ...) -> None: ...

class ReserveRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "deadline", "reference")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    deadline: _timestamp_pb2.Timestamp
    reference: bytes
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reference: _Optional[bytes] = ...) -> None: ...

class ReserveResponse(_message.Message):
    __slots__ = ("state", "balance")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    balance: BalanceAfter
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ..., balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class ConfirmRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "legs", "capture_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    LEGS_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    legs: _containers.RepeatedCompositeFieldContainer[Leg]
    capture_id: RequestId
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., legs: _Optional[_Iterable[_Union[Leg, _Mapping]]] = ..., capture_id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class Leg(_message.Message):
    __slots__ = ("to", "amount")
    TO_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    to: str
    amount: int
    def __init__(self, to: _Optional[str] = ..., amount: _Optional[int] = ...) -> None: ...

class ConfirmResponse(_message.Message):
    __slots__ = ("state", "balance")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    balance: BalanceAfter
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ..., balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("account", "id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("state", "balance")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    state: ReservationState
    balance: BalanceAfter
    def __init__(self, state: _Optional[_Union[ReservationState, str]] = ..., balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("account", "id", "amount", "to", "reference", "legs")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    LEGS_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    amount: int
    to: str
    reference: bytes
    legs: _containers.RepeatedCompositeFieldContainer[Leg]
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., amount: _Optional[int] = ..., to: _Optional[str] = ..., reference: _Optional[bytes] = ..., legs: _Optional[_Iterable[_Union[Leg, _Mapping]]] = ...) -> None: ...

class TransferResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceAfter
    def __init__(self, balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class BatchChangeRequest(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("deposit", "deduct", "reserve", "confirm", "cancel", "transfer")
    DEPOSIT_FIELD_NUMBER: _ClassVar[int]
    DEDUCT_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    deposit: DepositRequest
    deduct: DeductRequest
    reserve: ReserveRequest
    confirm: ConfirmRequest
    cancel: CancelRequest
    transfer: TransferRequest
    def __init__(self, deposit: _Optional[_Union[DepositRequest, _Mapping]] = ..., deduct: _Optional[_Union[DeductRequest, _Mapping]] = ..., reserve: _Optional[_Union[ReserveRequest, _Mapping]] = ..., confirm: _Optional[_Union[ConfirmRequest, _Mapping]] = ..., cancel: _Optional[_Union[CancelRequest, _Mapping]] = ..., transfer: _Optional[_Union[TransferRequest, _Mapping]] = ...) -> None: ...

class BatchChangeResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[ChangeAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[ChangeAnswer, _Mapping]]] = ...) -> None: ...

class ChangeAnswer(_message.Message):
    __slots__ = ("failure", "state", "balance")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    failure: AccountFailure
    state: ReservationState
    balance: BalanceAfter
    def __init__(self, failure: _Optional[_Union[AccountFailure, _Mapping]] = ..., state: _Optional[_Union[ReservationState, str]] = ..., balance: _Optional[_Union[BalanceAfter, _Mapping]] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("account", "id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    id: RequestId
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class FindResponse(_message.Message):
    __slots__ = ("decision", "amount", "deadline", "to", "forgotten_until", "legs", "capture_id")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_UNTIL_FIELD_NUMBER: _ClassVar[int]
    LEGS_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_ID_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    amount: int
    deadline: _timestamp_pb2.Timestamp
    to: str
    forgotten_until: _timestamp_pb2.Timestamp
    legs: _containers.RepeatedCompositeFieldContainer[Leg]
    capture_id: RequestId
    def __init__(self, decision: _Optional[_Union[Decision, str]] = ..., amount: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., to: _Optional[str] = ..., forgotten_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., legs: _Optional[_Iterable[_Union[Leg, _Mapping]]] = ..., capture_id: _Optional[_Union[RequestId, _Mapping]] = ...) -> None: ...

class GetHistoryRequest(_message.Message):
    __slots__ = ("account", "cursor", "since", "limit")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    cursor: str
    since: _timestamp_pb2.Timestamp
    limit: int
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., cursor: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limit: _Optional[int] = ...) -> None: ...

class GetHistoryResponse(_message.Message):
    __slots__ = ("effects", "next", "end", "lost_segments")
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    LOST_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    effects: _containers.RepeatedCompositeFieldContainer[AccountEffect]
    next: str
    end: bool
    lost_segments: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, effects: _Optional[_Iterable[_Union[AccountEffect, _Mapping]]] = ..., next: _Optional[str] = ..., end: bool = ..., lost_segments: _Optional[_Iterable[int]] = ...) -> None: ...

class AccountEffect(_message.Message):
    __slots__ = ("segment", "number", "follows_gap", "at", "kind", "amount", "id", "counterpart", "other_segment", "loan", "available", "held", "reference")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_GAP_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    COUNTERPART_FIELD_NUMBER: _ClassVar[int]
    OTHER_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    LOAN_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    segment: int
    number: int
    follows_gap: bool
    at: _timestamp_pb2.Timestamp
    kind: EffectKind
    amount: int
    id: RequestId
    counterpart: str
    other_segment: int
    loan: int
    available: int
    held: int
    reference: bytes
    def __init__(self, segment: _Optional[int] = ..., number: _Optional[int] = ..., follows_gap: bool = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Union[EffectKind, str]] = ..., amount: _Optional[int] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., counterpart: _Optional[str] = ..., other_segment: _Optional[int] = ..., loan: _Optional[int] = ..., available: _Optional[int] = ..., held: _Optional[int] = ..., reference: _Optional[bytes] = ...) -> None: ...

class GetAccountRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ...) -> None: ...

class GetAccountResponse(_message.Message):
    __slots__ = ("homes", "segments")
    HOMES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    homes: int
    segments: AccountSegments
    def __init__(self, homes: _Optional[int] = ..., segments: _Optional[_Union[AccountSegments, _Mapping]] = ...) -> None: ...

class AccountSegments(_message.Message):
    __slots__ = ("present", "lost", "unit", "floor", "ceiling", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    present: _containers.RepeatedCompositeFieldContainer[AccountSegment]
    lost: _containers.RepeatedCompositeFieldContainer[LostAccountSegment]
    unit: str
    floor: int
    ceiling: int
    labels: _containers.ScalarMap[str, str]
    def __init__(self, present: _Optional[_Iterable[_Union[AccountSegment, _Mapping]]] = ..., lost: _Optional[_Iterable[_Union[LostAccountSegment, _Mapping]]] = ..., unit: _Optional[str] = ..., floor: _Optional[int] = ..., ceiling: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AccountSegment(_message.Message):
    __slots__ = ("index", "available", "held", "in_doubt", "losses", "unfinished", "forgotten_until", "changes_per_second")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CHANGES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    index: int
    available: int
    held: int
    in_doubt: bool
    losses: int
    unfinished: int
    forgotten_until: _timestamp_pb2.Timestamp
    changes_per_second: int
    def __init__(self, index: _Optional[int] = ..., available: _Optional[int] = ..., held: _Optional[int] = ..., in_doubt: bool = ..., losses: _Optional[int] = ..., unfinished: _Optional[int] = ..., forgotten_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., changes_per_second: _Optional[int] = ...) -> None: ...

class LostAccountSegment(_message.Message):
    __slots__ = ("index", "last_seen")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    index: int
    last_seen: LastSeenSegment
    def __init__(self, index: _Optional[int] = ..., last_seen: _Optional[_Union[LastSeenSegment, _Mapping]] = ...) -> None: ...

class LastSeenSegment(_message.Message):
    __slots__ = ("amount", "at", "losses")
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    amount: int
    at: _timestamp_pb2.Timestamp
    losses: int
    def __init__(self, amount: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., losses: _Optional[int] = ...) -> None: ...

class ListAccountsRequest(_message.Message):
    __slots__ = ("namespace", "prefix", "conditions")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    prefix: str
    conditions: _containers.RepeatedScalarFieldContainer[AccountCondition]
    def __init__(self, namespace: _Optional[str] = ..., prefix: _Optional[str] = ..., conditions: _Optional[_Iterable[_Union[AccountCondition, str]]] = ...) -> None: ...

class ListAccountsResponse(_message.Message):
    __slots__ = ("shard", "accounts", "error")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    shard: str
    accounts: _containers.RepeatedCompositeFieldContainer[ListedAccount]
    error: str
    def __init__(self, shard: _Optional[str] = ..., accounts: _Optional[_Iterable[_Union[ListedAccount, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class ListedAccount(_message.Message):
    __slots__ = ("name", "segments", "failure")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    name: str
    segments: AccountSegments
    failure: AccountFailure
    def __init__(self, name: _Optional[str] = ..., segments: _Optional[_Union[AccountSegments, _Mapping]] = ..., failure: _Optional[_Union[AccountFailure, _Mapping]] = ...) -> None: ...

class ResegmentAccountRequest(_message.Message):
    __slots__ = ("account", "segments")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    account: Account
    segments: int
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., segments: _Optional[int] = ...) -> None: ...

class ResegmentAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LabelAccountRequest(_message.Message):
    __slots__ = ("account", "set", "remove")
    class SetEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    account: Account
    set: _containers.ScalarMap[str, str]
    remove: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., set: _Optional[_Mapping[str, str]] = ..., remove: _Optional[_Iterable[str]] = ...) -> None: ...

class LabelAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CloseAccountRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ...) -> None: ...

class CloseAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteAccountRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ...) -> None: ...

class DeleteAccountResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SweepAccountRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ...) -> None: ...

class SweepAccountResponse(_message.Message):
    __slots__ = ("expired", "delivered", "returned", "unpinned", "purged", "failures")
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    UNPINNED_FIELD_NUMBER: _ClassVar[int]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    expired: int
    delivered: int
    returned: int
    unpinned: int
    purged: int
    failures: _containers.RepeatedCompositeFieldContainer[AccountFailure]
    def __init__(self, expired: _Optional[int] = ..., delivered: _Optional[int] = ..., returned: _Optional[int] = ..., unpinned: _Optional[int] = ..., purged: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[AccountFailure, _Mapping]]] = ...) -> None: ...

class AccountFailure(_message.Message):
    __slots__ = ("error", "message")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    error: _error_pb2.ErrorDetail
    message: str
    def __init__(self, error: _Optional[_Union[_error_pb2.ErrorDetail, _Mapping]] = ..., message: _Optional[str] = ...) -> None: ...

class AcceptAccountRequest(_message.Message):
    __slots__ = ("account", "no_wait")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    NO_WAIT_FIELD_NUMBER: _ClassVar[int]
    account: Account
    no_wait: bool
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., no_wait: bool = ...) -> None: ...

class AcceptAccountResponse(_message.Message):
    __slots__ = ("before", "until_new")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NEW_FIELD_NUMBER: _ClassVar[int]
    before: AccountSegments
    until_new: _duration_pb2.Duration
    def __init__(self, before: _Optional[_Union[AccountSegments, _Mapping]] = ..., until_new: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
