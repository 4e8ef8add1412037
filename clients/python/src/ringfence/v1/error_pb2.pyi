import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_UNSPECIFIED: _ClassVar[Effect]
    EFFECT_NONE: _ClassVar[Effect]
    EFFECT_UNKNOWN: _ClassVar[Effect]

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_INPUT: _ClassVar[ErrorReason]
    ERROR_REASON_DEADLINE: _ClassVar[ErrorReason]
    ERROR_REASON_STOPPING: _ClassVar[ErrorReason]
    ERROR_REASON_SHARD_UNAVAILABLE: _ClassVar[ErrorReason]
    ERROR_REASON_SHARD_UNUSABLE: _ClassVar[ErrorReason]
    ERROR_REASON_OUT_OF_MEMORY: _ClassVar[ErrorReason]
    ERROR_REASON_MOVING: _ClassVar[ErrorReason]
    ERROR_REASON_FOREIGN: _ClassVar[ErrorReason]
    ERROR_REASON_INTERNAL: _ClassVar[ErrorReason]
    ERROR_REASON_UNAUTHENTICATED: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_ALLOWED: _ClassVar[ErrorReason]
    ERROR_REASON_RATE_LIMITED: _ClassVar[ErrorReason]
    ERROR_REASON_RESIZE_REFUSED: _ClassVar[ErrorReason]
    ERROR_REASON_HELD: _ClassVar[ErrorReason]
    ERROR_REASON_TIMED_OUT: _ClassVar[ErrorReason]
    ERROR_REASON_RECOVERING: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_WAITERS: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_HELD: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_LATE: _ClassVar[ErrorReason]
    ERROR_REASON_LOCK_LOST: _ClassVar[ErrorReason]
    ERROR_REASON_OTHER_KIND: _ClassVar[ErrorReason]
    ERROR_REASON_INSUFFICIENT: _ClassVar[ErrorReason]
    ERROR_REASON_CANCELLED: _ClassVar[ErrorReason]
    ERROR_REASON_UNKNOWN_RESERVATION: _ClassVar[ErrorReason]
    ERROR_REASON_TRANSFER_REFUSED: _ClassVar[ErrorReason]
    ERROR_REASON_TRANSFER_UNFINISHED: _ClassVar[ErrorReason]
    ERROR_REASON_NO_ACCOUNT: _ClassVar[ErrorReason]
    ERROR_REASON_ACCOUNT_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_ACCOUNT_CLOSED: _ClassVar[ErrorReason]
    ERROR_REASON_SEGMENT_LOST: _ClassVar[ErrorReason]
    ERROR_REASON_CONTENDED: _ClassVar[ErrorReason]
    ERROR_REASON_ID_CONFLICT: _ClassVar[ErrorReason]
    ERROR_REASON_ID_TOO_OLD: _ClassVar[ErrorReason]
    ERROR_REASON_ID_IN_FUTURE: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_IDS: _ClassVar[ErrorReason]
    ERROR_REASON_OUT_OF_RANGE: _ClassVar[ErrorReason]
    ERROR_REASON_OTHER_UNIT: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_DELETABLE: _ClassVar[ErrorReason]
EFFECT_UNSPECIFIED: Effect
EFFECT_NONE: Effect
EFFECT_UNKNOWN: Effect
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_INVALID_INPUT: ErrorReason
ERROR_REASON_DEADLINE: ErrorReason
ERROR_REASON_STOPPING: ErrorReason
ERROR_REASON_SHARD_UNAVAILABLE: ErrorReason
ERROR_REASON_SHARD_UNUSABLE: ErrorReason
ERROR_REASON_OUT_OF_MEMORY: ErrorReason
ERROR_REASON_MOVING: ErrorReason
ERROR_REASON_FOREIGN: ErrorReason
ERROR_REASON_INTERNAL: ErrorReason
ERROR_REASON_UNAUTHENTICATED: ErrorReason
ERROR_REASON_NOT_ALLOWED: ErrorReason
ERROR_REASON_RATE_LIMITED: ErrorReason
ERROR_REASON_RESIZE_REFUSED: ErrorReason
ERROR_REASON_HELD: ErrorReason
ERROR_REASON_TIMED_OUT: ErrorReason
ERROR_REASON_RECOVERING: ErrorReason
ERROR_REASON_TOO_MANY_WAITERS: ErrorReason
ERROR_REASON_TOO_MANY_HELD: ErrorReason
ERROR_REASON_TOO_LATE: ErrorReason
ERROR_REASON_LOCK_LOST: ErrorReason
ERROR_REASON_OTHER_KIND: ErrorReason
ERROR_REASON_INSUFFICIENT: ErrorReason
ERROR_REASON_CANCELLED: ErrorReason
ERROR_REASON_UNKNOWN_RESERVATION: ErrorReason
ERROR_REASON_TRANSFER_REFUSED: ErrorReason
ERROR_REASON_TRANSFER_UNFINISHED: ErrorReason
ERROR_REASON_NO_ACCOUNT: ErrorReason
ERROR_REASON_ACCOUNT_EXISTS: ErrorReason
ERROR_REASON_ACCOUNT_CLOSED: ErrorReason
ERROR_REASON_SEGMENT_LOST: ErrorReason
ERROR_REASON_CONTENDED: ErrorReason
ERROR_REASON_ID_CONFLICT: ErrorReason
ERROR_REASON_ID_TOO_OLD: ErrorReason
ERROR_REASON_ID_IN_FUTURE: ErrorReason
ERROR_REASON_TOO_MANY_IDS: ErrorReason
ERROR_REASON_OUT_OF_RANGE: ErrorReason
ERROR_REASON_OTHER_UNIT: ErrorReason
ERROR_REASON_NOT_DELETABLE: ErrorReason

class ErrorDetail(_message.Message):
    __slots__ = ("reason", "retryable", "effect", "retry_after", "invalid_input", "held_by")
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    INVALID_INPUT_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    reason: ErrorReason
    retryable: bool
    effect: Effect
    retry_after: _duration_pb2.Duration
    invalid_input: InvalidInput
    held_by: HeldBy
    def __init__(self, reason: _Optional[_Union[ErrorReason, str]] = ..., retryable: bool = ..., effect: _Optional[_Union[Effect, str]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., invalid_input: _Optional[_Union[InvalidInput, _Mapping]] = ..., held_by: _Optional[_Union[HeldBy, _Mapping]] = ...) -> None: ...

class HeldBy(_message.Message):
    __slots__ = ("label", "remaining", "ahead")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    label: str
    remaining: _duration_pb2.Duration
    ahead: int
    def __init__(self, label: _Optional[str] = ..., remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ahead: _Optional[int] = ...) -> None: ...

class InvalidInput(_message.Message):
    __slots__ = ("field", "value", "limit")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: str
    limit: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[str] = ..., limit: _Optional[str] = ...) -> None: ...
