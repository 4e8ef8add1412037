import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from . import lock_pb2 as _lock_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResizeEnd(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESIZE_END_UNSPECIFIED: _ClassVar[ResizeEnd]
    RESIZE_END_REACHED: _ClassVar[ResizeEnd]
    RESIZE_END_TURNED_BACK: _ClassVar[ResizeEnd]
RESIZE_END_UNSPECIFIED: ResizeEnd
RESIZE_END_REACHED: ResizeEnd
RESIZE_END_TURNED_BACK: ResizeEnd

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ("grace",)
    GRACE_FIELD_NUMBER: _ClassVar[int]
    grace: _duration_pb2.Duration
    def __init__(self, grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetTopologyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetTopologyResponse(_message.Message):
    __slots__ = ("id", "version", "max_lease", "shards", "resizing")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    RESIZING_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    max_lease: _duration_pb2.Duration
    shards: _containers.RepeatedCompositeFieldContainer[Shard]
    resizing: bool
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., max_lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., shards: _Optional[_Iterable[_Union[Shard, _Mapping]]] = ..., resizing: bool = ...) -> None: ...

class Shard(_message.Message):
    __slots__ = ("id", "address", "share", "recovering_for", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_FOR_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    share: float
    recovering_for: _duration_pb2.Duration
    error: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ..., share: _Optional[float] = ..., recovering_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class ForceReleaseRequest(_message.Message):
    __slots__ = ("namespace", "key", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., reason: _Optional[str] = ...) -> None: ...

class ForceReleaseResponse(_message.Message):
    __slots__ = ("holders",)
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    holders: _containers.RepeatedCompositeFieldContainer[_lock_pb2.LockHolder]
    def __init__(self, holders: _Optional[_Iterable[_Union[_lock_pb2.LockHolder, _Mapping]]] = ...) -> None: ...

class AddShardRequest(_message.Message):
    __slots__ = ("url", "id", "weight")
    URL_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    url: str
    id: str
    weight: int
    def __init__(self, url: _Optional[str] = ..., id: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class AddShardResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: ResizeProgress
    def __init__(self, progress: _Optional[_Union[ResizeProgress, _Mapping]] = ...) -> None: ...

class RemoveShardRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RemoveShardResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: ResizeProgress
    def __init__(self, progress: _Optional[_Union[ResizeProgress, _Mapping]] = ...) -> None: ...

class WeighShardRequest(_message.Message):
    __slots__ = ("id", "weight")
    ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    id: str
    weight: int
    def __init__(self, id: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class WeighShardResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: ResizeProgress
    def __init__(self, progress: _Optional[_Union[ResizeProgress, _Mapping]] = ...) -> None: ...

class ResumeResizeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeResizeResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: ResizeProgress
    def __init__(self, progress: _Optional[_Union[ResizeProgress, _Mapping]] = ...) -> None: ...

class AbortResizeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AbortResizeResponse(_message.Message):
    __slots__ = ("progress",)
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    progress: ResizeProgress
    def __init__(self, progress: _Optional[_Union[ResizeProgress, _Mapping]] = ...) -> None: ...

class ResizeProgress(_message.Message):
    __slots__ = ("slots_moved", "slots_to_move", "slots_migrating", "locks_carried", "counters_carried", "left", "waiting_for", "end")
    SLOTS_MOVED_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TO_MOVE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_MIGRATING_FIELD_NUMBER: _ClassVar[int]
    LOCKS_CARRIED_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_CARRIED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    slots_moved: int
    slots_to_move: int
    slots_migrating: int
    locks_carried: int
    counters_carried: int
    left: _duration_pb2.Duration
    waiting_for: str
    end: ResizeEnd
    def __init__(self, slots_moved: _Optional[int] = ..., slots_to_move: _Optional[int] = ..., slots_migrating: _Optional[int] = ..., locks_carried: _Optional[int] = ..., counters_carried: _Optional[int] = ..., left: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., waiting_for: _Optional[str] = ..., end: _Optional[_Union[ResizeEnd, str]] = ...) -> None: ...
