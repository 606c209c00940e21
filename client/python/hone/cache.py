"""Results of other autotuners in Hone's store, so that a team tunes a Triton or Helion kernel once.

A value is bytes that Hone neither reads nor checks, by a name and the environment that it depends on.
"""

from __future__ import annotations

from typing import Union

from . import errors
from ._client import Client

_MOST = 1 << 20  # bytes of a value; tuning.proto


class Cache:
    """The values of one environment, such as "H200, driver 580, triton 3.6". Used by any number of threads."""

    def __init__(self, environment: str = "", client: Union[Client, None] = None) -> None:
        self.environment = environment
        self._client = client

    def _connection(self) -> Client:
        if self._client is None:
            import hone

            self._client = hone.client()
        return self._client

    def get(self, name: str) -> Union[bytes, None]:
        """The value that was put last; None: there is none."""
        try:
            found = self._connection().connection.call("GetCached", name=name, environment=self.environment)
        except errors.NothingKnown:
            return None
        return bytes(found.value)

    def put(self, name: str, value: bytes) -> None:
        """Keeps a value of 1 byte to 1 MiB, instead of the one before."""
        if not 0 < len(value) <= _MOST:
            raise errors.InvalidArgument(f"a value has 1 to {_MOST} bytes, not {len(value)}")
        self._connection().connection.call("PutCached", name=name, environment=self.environment, value=bytes(value))


class TritonBackend:
    """A backend for Triton's remote cache:

        export TRITON_CACHE_MANAGER=triton.runtime.cache:RemoteCacheManager
        export TRITON_REMOTE_CACHE_BACKEND=hone.cache:TritonBackend

    Triton makes one for each kernel; `key` is its hash of source, options, device and versions. What is larger than a
    value may be stays in Triton's own folder."""

    def __init__(self, key: str, client: Union[Client, None] = None) -> None:
        self._key = key
        self._cache = Cache("triton", client)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        found = {name: self._cache.get(f"{self._key}/{name}") for name in filenames}
        return {name: value for name, value in found.items() if value is not None}

    def put(self, filename: str, data: bytes) -> None:
        data = data.encode() if isinstance(data, str) else bytes(data)
        if 0 < len(data) <= _MOST:
            self._cache.put(f"{self._key}/{filename}", data)
