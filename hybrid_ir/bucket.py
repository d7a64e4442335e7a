"""Files of a root in an object store that speaks S3.

By botocore, each request tried again by itself (:mod:`hybrid_ir.remote_errors`).  pyarrow's S3 file
system was measured and left: it writes without conditions, gives up on status 429, starts a large
upload again from its first byte, and can publish half of one when it is closed after a failure.

Endpoint, region and credentials come from the usual environment: ``AWS_ENDPOINT_URL_S3`` or
``AWS_ENDPOINT_URL``, ``AWS_REGION`` or ``AWS_DEFAULT_REGION``, ``AWS_ACCESS_KEY_ID`` and
``AWS_SECRET_ACCESS_KEY``, or ``AWS_PROFILE``.

A process that is killed between two parts leaves parts that nobody can read but that cost money;
a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes them.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

import botocore.config  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from hybrid_ir import remote_errors
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.folder import locked

T = TypeVar("T")

PART_BYTES = 16 * 2**20
"""Larger files are sent in parts."""
MOST_PARTS, MOST_DELETED = 10_000, 1_000
"""S3's own limits of a file and of a request."""
PARTS_AT_ONCE = 4

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
        try:
            of_profile = self._session.get_scoped_config().get("endpoint_url")
        except BotoCoreError as error:
            raise remote_errors.fault(error, self.path(""), None) from error
        return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or of_profile

    @cached_property
    def _client(self) -> Any:
        config = botocore.config.Config(
            retries={"total_max_attempts": 1},  # all tries are ours: a conditional write must know of its own
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
            s3={"addressing_style": "path" if self._endpoint else "auto"},
        )
        # Where no region is named, S3 says at the first request which is the bucket's.
        region = os.environ.get("AWS_REGION") or self._session.get_config_variable("region") or "us-east-1"
        return self._session.create_client("s3", region_name=region, endpoint_url=self._endpoint or None, config=config)

    def path(self, name: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{name}"

    def _try(self, name: str, action: Callable[[], T]) -> T:
        return remote_errors.retried(action, self.path(name), self._endpoint)

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{name}"}

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

    def _under(self, folder: str) -> Iterator[str]:
        """Names of all objects below a folder, page by page."""
        prefix = f"{self._prefix}{folder.strip('/')}".rstrip("/")
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix + "/" if prefix else ""}
        while True:
            page = self._try(folder, partial(self._client.list_objects_v2, **request))
            for found in page.get("Contents", ()):
                yield found["Key"][len(self._prefix) :]
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def files(self, folder: str) -> list[str]:
        # A name that ends in a slash is what some tools write in place of a folder.
        return sorted(
            name for name in self._under(folder) if not name.rpartition("/")[2].startswith(".") and name[-1:] != "/"
        )

    def remove(self, folder: str) -> None:
        names = iter(list(self._under(folder)))
        while some := list(islice(names, MOST_DELETED)):
            objects = [{"Key": f"{self._prefix}{name}"} for name in some]
            request = {"Bucket": self._bucket, "Delete": {"Objects": objects, "Quiet": True}}
            answer = self._try(folder, partial(self._client.delete_objects, **request))
            for failed in answer.get("Errors", ()):  # each for itself, with what can be said and tried
                self.delete(failed["Key"][len(self._prefix) :])

    def delete(self, name: str) -> None:
        self._try(name, lambda: self._client.delete_object(**self._place(name)))

    def read(self, name: str) -> bytes:
        data, _ = self.read_version(name)
        if data is None:
            raise FileNotFoundError(self.path(name))
        return data

    def open(self, name: str) -> BinaryIO:
        found = self._head(name)
        place = {**self._place(name), "IfMatch": found["ETag"]}

        def read(start: int, size: int) -> bytes:
            which = {**place, "Range": f"bytes={start}-{start + size - 1}"}
            return self._try(name, lambda: bytes(self._client.get_object(**which)["Body"].read()))

        return _Ranges(read, int(found["ContentLength"]))  # type: ignore[return-value]

    def open_parquet(self, name: str) -> pq.ParquetFile:
        return pq.ParquetFile(self.open(name))

    def write(self, name: str, data: bytes | memoryview) -> None:
        if len(data) <= PART_BYTES:
            self._try(name, lambda: self._client.put_object(**self._place(name), Body=bytes(data)))
        else:
            self._write_parts(name, memoryview(data))

    def _write_parts(self, name: str, data: memoryview) -> None:
        """The file appears only with the last request."""
        place = self._place(name)
        size = max(PART_BYTES, -(-len(data) // MOST_PARTS))
        upload = self._try(name, lambda: self._client.create_multipart_upload(**place))["UploadId"]

        def send(number: int) -> dict[str, Any]:
            part = bytes(data[(number - 1) * size : number * size])
            which = {**place, "UploadId": upload, "PartNumber": number}
            return {
                "PartNumber": number,
                "ETag": self._try(name, lambda: self._client.upload_part(**which, Body=part))["ETag"],
            }

        tries = 0

        def complete(parts: list[dict[str, Any]]) -> None:
            nonlocal tries
            tries += 1
            try:
                self._client.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts})
            except ClientError as error:
                # It may have been completed by our own earlier try, if only its answer was lost.
                lost = remote_errors.code(error) == "NoSuchUpload" and tries > 1
                if not (lost and self.size(name) == len(data)):
                    raise

        try:
            with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
                parts = list(pool.map(send, range(1, -(-len(data) // size) + 1)))
            self._try(name, lambda: complete(parts))
        except BaseException:
            with suppress(Exception):
                self._client.abort_multipart_upload(**place, UploadId=upload)
            raise

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

    def delete_version(self, name: str, version: str) -> bool:
        def delete() -> bool:
            try:
                self._client.delete_object(**self._place(name), IfMatch=version)
            except ClientError as error:
                if remote_errors.status(error) != 412:
                    raise
                return False
            return True

        try:
            return self._try(name, delete)
        except FileNotFoundError:
            return False


class _Ranges(io.RawIOBase):
    """A remote file for random access: each read is a request of its own."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read, self._size, self._at = read, size, 0

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
        size = min(len(buffer), self._size - self._at)
        if size <= 0:
            return 0
        buffer[:size] = self._read(self._at, size)
        self._at += size
        return size


def _cache() -> Path:
    named = os.environ.get(CACHE_VARIABLE)
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"hybrid-ir-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise BadInput(f"{folder} belongs to someone else; name a folder of your own in {CACHE_VARIABLE}.")
    return folder
