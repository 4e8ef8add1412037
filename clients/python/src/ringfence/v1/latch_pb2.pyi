import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from . import counter_pb2 as _counter_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SetLatchRequest(_message.Message):
    __slots__ = ("name", "count", "durability", "replicas")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    durability: _counter_pb2.Durability
    replicas: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., durability: _Optional[_Union[_counter_pb2.Durability, str]] = ..., replicas: _Optional[int] = ...) -> None: ...

class SetLatchResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CountDownLatchRequest(_message.Message):
    __slots__ = ("name", "id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: _counter_pb2.RequestId
    def __init__(self, name: _Optional[str] = ..., id: _Optional[_Union[_counter_pb2.RequestId, _Mapping]] = ...) -> None: ...

class CountDownLatchResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetLatchRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetLatchResponse(_message.Message):
    __slots__ = ("remaining",)
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    remaining: int
    def __init__(self, remaining: _Optional[int] = ...) -> None: ...

class WaitLatchRequest(_message.Message):
    __slots__ = ("name", "wait")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    wait: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitLatchResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
