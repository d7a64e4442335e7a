"""Files of a root in an object store that speaks S3.

pyarrow writes (in parts where a file is large), lists, deletes and reads ranges; botocore does
what pyarrow cannot: read and write on the condition that nobody was faster.  Endpoint, region and
credentials come from the usual environment: ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL``,
``AWS_REGION`` or ``AWS_DEFAULT_REGION``, ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, or
``AWS_PROFILE``.

A write that dies between two parts leaves parts that nobody can read but that cost money; a
lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes them.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

import botocore.config  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from hybrid_ir import remote_errors
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.folder import locked

T = TypeVar("T")

CACHE_VARIABLE = "HYBRID_IR_CACHE"
"""Names the folder for copies of remote files; else one in the system's temporary folder."""


class Bucket:
    """Missing files are FileNotFoundError; every other fault is a sentence of :mod:`hybrid_ir.remote_errors`."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if "@" in parts.netloc:
            raise BadInput("Keys do not belong in an address: give s3://bucket/prefix, and set AWS_ACCESS_KEY_ID.")
        if not parts.netloc or parts.query or parts.fragment:
            raise BadInput(f"{uri}: give s3://bucket/prefix; the endpoint is read from AWS_ENDPOINT_URL.")
        self._bucket = parts.netloc
        self._prefix = f"{parts.path.strip('/')}/".lstrip("/")
        self._is_there = False

    @cached_property
    def _session(self) -> Any:
        return botocore.session.Session()

    @cached_property
    def _endpoint(self) -> str | None:
        of_profile = self._session.get_scoped_config().get("endpoint_url") if self._session.profile else None
        return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or of_profile

    @cached_property
    def _region(self) -> str:
        given = os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        return given or ("us-east-1" if self._endpoint else self._try("", self._find_region))

    def _find_region(self) -> str:
        return str(pafs.resolve_s3_region(self._bucket))

    @cached_property
    def _client(self) -> Any:
        config = botocore.config.Config(
            retries={"total_max_attempts": 1},  # all tries are ours: a conditional write must know of its own
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
            s3={"addressing_style": "path" if self._endpoint else "auto"},
        )
        return self._session.create_client(
            "s3", region_name=self._region, endpoint_url=self._endpoint or None, config=config
        )

    @cached_property
    def _fs(self) -> pafs.S3FileSystem:
        address: dict[str, Any] = {}
        if self._endpoint:
            scheme, _, host = self._endpoint.rstrip("/").rpartition("://")
            address = {"endpoint_override": host, "scheme": scheme or "https"}
        return pafs.S3FileSystem(
            region=self._region,
            allow_delayed_open=True,  # a small file is one request, not the three of an upload in parts
            # In the foreground, pyarrow completes an upload whose middle part failed: half a file under its name.
            background_writes=True,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=3),
            **address,
        )

    def path(self, name: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{name}"

    def _try(self, name: str, action: Callable[[], T]) -> T:
        return remote_errors.retried(action, self.path(name), self._endpoint)

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{name}"}

    def _arrow_path(self, name: str) -> str:
        return f"{self._bucket}/{self._prefix}{name}".rstrip("/")

    def _check_bucket(self) -> None:
        """A file that is missing because its bucket is must not read as an empty root."""
        if self._is_there:
            return
        try:
            self._try("", lambda: self._client.head_bucket(Bucket=self._bucket))
        except FileNotFoundError:
            raise NotFound(remote_errors.no_bucket(self.path(""), self._endpoint)) from None
        except BadInput:
            pass  # one may be allowed to read files and not to look at the bucket
        self._is_there = True

    def _head(self, name: str) -> Any:
        try:
            return self._try(name, lambda: self._client.head_object(**self._place(name)))
        except FileNotFoundError:
            self._check_bucket()
            raise

    def exists(self, name: str) -> bool:
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        return int(self._head(name)["ContentLength"])

    def files(self, folder: str) -> list[str]:
        selector = pafs.FileSelector(self._arrow_path(folder), recursive=True, allow_not_found=True)
        found = self._try(folder, lambda: self._fs.get_file_info(selector))
        if not found:
            self._check_bucket()
        start = len(self._bucket) + 1 + len(self._prefix)
        return sorted(
            info.path[start:]
            for info in found
            if info.type == pafs.FileType.File and not info.base_name.startswith(".")
        )

    def remove(self, folder: str) -> None:
        path = self._arrow_path(folder)
        if self._try(folder, lambda: self._fs.get_file_info(path)).type != pafs.FileType.Directory:
            return
        with suppress(FileNotFoundError):  # removed by a try whose answer was lost
            self._try(folder, lambda: self._fs.delete_dir(path))

    def delete(self, name: str) -> None:
        self._try(name, lambda: self._client.delete_object(**self._place(name)))

    def read(self, name: str) -> bytes:
        data, _ = self.read_version(name)
        if data is None:
            raise FileNotFoundError(self.path(name))
        return data

    def open(self, name: str) -> BinaryIO:
        def opened() -> tuple[Any, int]:
            # Opening is delayed, so that only the size, which is needed anyway, tells of a missing file.
            file = self._fs.open_input_file(self._arrow_path(name))
            return file, int(file.size())

        try:
            file, size = self._try(name, opened)
        except FileNotFoundError:
            self._check_bucket()
            raise
        return _Ranges(file, size, lambda action: self._try(name, action))  # type: ignore[return-value]

    def open_parquet(self, name: str) -> pq.ParquetFile:
        return pq.ParquetFile(self.open(name))

    def write(self, name: str, data: bytes | memoryview) -> None:
        def send() -> None:
            # One call of write: an error between two would let the stream's end publish what came before it.
            with self._fs.open_output_stream(self._arrow_path(name)) as stream:
                stream.write(data)

        self._try(name, send)

    def local(self, name: str) -> Path:
        """A copy on this machine, fetched once by whichever process is first; named by content, so never stale."""
        version = str(self._head(name)["ETag"])
        root = hashlib.sha256(f"{self._endpoint} {self.path('')}".encode()).hexdigest()[:16]
        target = _cache() / root / hashlib.sha256(version.encode()).hexdigest()[:16] / name
        if target.exists():
            return target
        with locked(target):
            if target.exists():
                return target
            part = target.with_name(f".{target.name}.part")
            try:
                whole = self._try(name, lambda: self._fetch(name, version, part))
                if whole:
                    part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return target if whole else self.local(name)

    def _fetch(self, name: str, version: str, target: Path) -> bool:
        """False: the file is of another content by now."""
        try:
            body = self._client.get_object(**self._place(name), IfMatch=version)["Body"]
        except ClientError as error:
            if remote_errors.status(error) == 412:
                return False
            raise
        with target.open("wb") as stream:
            for block in body.iter_chunks(1 << 20):
                stream.write(block)
        return True

    def read_version(self, name: str) -> tuple[bytes | None, str | None]:
        def get() -> tuple[bytes, str]:
            found = self._client.get_object(**self._place(name))
            return found["Body"].read(), found["ETag"]

        try:
            return self._try(name, get)
        except FileNotFoundError:
            self._check_bucket()
            return None, None

    def replace(self, name: str, data: bytes, version: str | None) -> bool:
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        tries = 0

        def put() -> bool:
            nonlocal tries
            tries += 1
            try:
                self._client.put_object(**self._place(name), Body=data, **condition)
            except ClientError as error:
                if remote_errors.status(error) not in (404, 412) or remote_errors.code(error) == "NoSuchBucket":
                    raise
                # It may be our own earlier try that changed the file, if only its answer was lost.
                return tries > 1 and self.read_version(name)[0] == data
            return True

        return self._try(name, put)


class _Ranges(io.RawIOBase):
    """A remote file for random access, whose every read is tried again by itself."""

    def __init__(self, file: Any, size: int, attempt: Callable[[Callable[[], bytes]], bytes]) -> None:
        self._file, self._size, self._attempt = file, size, attempt
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._attempt(lambda: self._file.read_at(min(len(buffer), max(0, self._size - self._at)), self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _cache() -> Path:
    named = os.environ.get(CACHE_VARIABLE)
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"hybrid-ir-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise BadInput(f"{folder} belongs to someone else; name a folder of your own in {CACHE_VARIABLE}.")
    return folder
