import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from . import error_pb2 as _error_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LockMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOCK_MODE_UNSPECIFIED: _ClassVar[LockMode]
    LOCK_MODE_EXCLUSIVE: _ClassVar[LockMode]
    LOCK_MODE_READ: _ClassVar[LockMode]
    LOCK_MODE_WRITE: _ClassVar[LockMode]
    LOCK_MODE_PERMITS: _ClassVar[LockMode]

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_HELD: _ClassVar[WaitReason]
    WAIT_REASON_RECOVERING: _ClassVar[WaitReason]
    WAIT_REASON_SHARD_UNAVAILABLE: _ClassVar[WaitReason]

class ReleaseOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RELEASE_OUTCOME_UNSPECIFIED: _ClassVar[ReleaseOutcome]
    RELEASE_OUTCOME_HELD: _ClassVar[ReleaseOutcome]
    RELEASE_OUTCOME_LOST: _ClassVar[ReleaseOutcome]
    RELEASE_OUTCOME_UNKNOWN: _ClassVar[ReleaseOutcome]

class LockKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOCK_KIND_UNSPECIFIED: _ClassVar[LockKind]
    LOCK_KIND_MUTEX: _ClassVar[LockKind]
    LOCK_KIND_SEMAPHORE: _ClassVar[LockKind]
    LOCK_KIND_READ_WRITE: _ClassVar[LockKind]
LOCK_MODE_UNSPECIFIED: LockMode
LOCK_MODE_EXCLUSIVE: LockMode
LOCK_MODE_READ: LockMode
LOCK_MODE_WRITE: LockMode
LOCK_MODE_PERMITS: LockMode
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_HELD: WaitReason
WAIT_REASON_RECOVERING: WaitReason
WAIT_REASON_SHARD_UNAVAILABLE: WaitReason
RELEASE_OUTCOME_UNSPECIFIED: ReleaseOutcome
RELEASE_OUTCOME_HELD: ReleaseOutcome
RELEASE_OUTCOME_LOST: ReleaseOutcome
RELEASE_OUTCOME_UNKNOWN: ReleaseOutcome
LOCK_KIND_UNSPECIFIED: LockKind
LOCK_KIND_MUTEX: LockKind
LOCK_KIND_SEMAPHORE: LockKind
LOCK_KIND_READ_WRITE: LockKind

class AcquireRequest(_message.Message):
    __slots__ = ("namespace", "key", "lease", "hold_for", "wait", "label", "mode", "permits", "capacity", "preferred", "nonce")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    HOLD_FOR_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    lease: _duration_pb2.Duration
    hold_for: _duration_pb2.Duration
    wait: _duration_pb2.Duration
    label: str
    mode: LockMode
    permits: int
    capacity: int
    preferred: bool
    nonce: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., hold_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., label: _Optional[str] = ..., mode: _Optional[_Union[LockMode, str]] = ..., permits: _Optional[int] = ..., capacity: _Optional[int] = ..., preferred: bool = ..., nonce: _Optional[bytes] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("handle", "token", "valid_for")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    handle: bytes
    token: int
    valid_for: _duration_pb2.Duration
    def __init__(self, handle: _Optional[bytes] = ..., token: _Optional[int] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcquireAndWatchResponse(_message.Message):
    __slots__ = ("wait", "granted")
    WAIT_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    wait: WaitNotice
    granted: AcquireResponse
    def __init__(self, wait: _Optional[_Union[WaitNotice, _Mapping]] = ..., granted: _Optional[_Union[AcquireResponse, _Mapping]] = ...) -> None: ...

class WaitNotice(_message.Message):
    __slots__ = ("reason", "message", "held_by")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    reason: WaitReason
    message: str
    held_by: _error_pb2.HeldBy
    def __init__(self, reason: _Optional[_Union[WaitReason, str]] = ..., message: _Optional[str] = ..., held_by: _Optional[_Union[_error_pb2.HeldBy, _Mapping]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: bytes
    def __init__(self, handle: _Optional[bytes] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("valid_for", "stopping")
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    STOPPING_FIELD_NUMBER: _ClassVar[int]
    valid_for: _duration_pb2.Duration
    stopping: bool
    def __init__(self, valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stopping: bool = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: bytes
    def __init__(self, handle: _Optional[bytes] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: ReleaseOutcome
    def __init__(self, outcome: _Optional[_Union[ReleaseOutcome, str]] = ...) -> None: ...

class DowngradeRequest(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: bytes
    def __init__(self, handle: _Optional[bytes] = ...) -> None: ...

class DowngradeResponse(_message.Message):
    __slots__ = ("handle", "valid_for")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    handle: bytes
    valid_for: _duration_pb2.Duration
    def __init__(self, handle: _Optional[bytes] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class InspectRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class InspectResponse(_message.Message):
    __slots__ = ("holder", "waiters", "others")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    holder: LockHolder
    waiters: _containers.RepeatedCompositeFieldContainer[LockWaiter]
    others: _containers.RepeatedCompositeFieldContainer[LockHolder]
    def __init__(self, holder: _Optional[_Union[LockHolder, _Mapping]] = ..., waiters: _Optional[_Iterable[_Union[LockWaiter, _Mapping]]] = ..., others: _Optional[_Iterable[_Union[LockHolder, _Mapping]]] = ...) -> None: ...

class LockHolder(_message.Message):
    __slots__ = ("label", "first_token", "tokens", "remaining", "kind", "permits", "exclusive", "held_for")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    HELD_FOR_FIELD_NUMBER: _ClassVar[int]
    label: str
    first_token: int
    tokens: int
    remaining: _duration_pb2.Duration
    kind: LockKind
    permits: int
    exclusive: bool
    held_for: _duration_pb2.Duration
    def __init__(self, label: _Optional[str] = ..., first_token: _Optional[int] = ..., tokens: _Optional[int] = ..., remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., kind: _Optional[_Union[LockKind, str]] = ..., permits: _Optional[int] = ..., exclusive: bool = ..., held_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class LockWaiter(_message.Message):
    __slots__ = ("label", "callers", "kind", "permits", "capacity", "exclusive")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    label: str
    callers: int
    kind: LockKind
    permits: int
    capacity: int
    exclusive: bool
    def __init__(self, label: _Optional[str] = ..., callers: _Optional[int] = ..., kind: _Optional[_Union[LockKind, str]] = ..., permits: _Optional[int] = ..., capacity: _Optional[int] = ..., exclusive: bool = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("shard", "locks", "error")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    shard: str
    locks: _containers.RepeatedCompositeFieldContainer[HeldLock]
    error: str
    def __init__(self, shard: _Optional[str] = ..., locks: _Optional[_Iterable[_Union[HeldLock, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class HeldLock(_message.Message):
    __slots__ = ("namespace", "key", "holder", "waiting", "others")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    holder: LockHolder
    waiting: int
    others: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., holder: _Optional[_Union[LockHolder, _Mapping]] = ..., waiting: _Optional[int] = ..., others: _Optional[int] = ...) -> None: ...
