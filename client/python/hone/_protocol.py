"""The messages and calls of hone.v1, made from the descriptors that the build compiles from proto/.

They work with every version of protobuf from 3.21, which generated Python code does not."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import _programs


class Method(NamedTuple):
    """A call of a service."""

    path: str
    request: Any
    response: Any
    streams: bool  # the answer is a stream


@functools.lru_cache(maxsize=None)
def _pool() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(_programs.file("python/protocol.binpb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return pool


def _class_of(descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_pool()).GetPrototype(descriptor)


@functools.lru_cache(maxsize=None)
def message(name: str) -> Any:
    """The class of a message of hone.v1."""
    return _class_of(_pool().FindMessageTypeByName(f"hone.v1.{name}"))


@functools.lru_cache(maxsize=None)
def enum_names(name: str) -> dict[int, str]:
    """The names of an enum's values, without the name of the enum, in lower case."""
    values = _pool().FindEnumTypeByName(f"hone.v1.{name}").values
    prefix = values[0].name[: -len("UNSPECIFIED")]
    return {value.number: value.name[len(prefix):].lower() for value in values}


@functools.lru_cache(maxsize=None)
def method(name: str) -> Method:
    """A call of the tuning service."""
    service = _pool().FindServiceByName("hone.v1.TuningService")
    found = service.methods_by_name[name]
    proto = descriptor_pb2.ServiceDescriptorProto()
    service.CopyToProto(proto)
    streams = next(one.server_streaming for one in proto.method if one.name == name)
    return Method(f"/{service.full_name}/{name}", _class_of(found.input_type), _class_of(found.output_type), streams)
