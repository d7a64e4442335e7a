"""One writer at a time on a root: a lease that its holder renews, and that ends by itself when the holder died.

The file ``LEASE`` changes only by compare-and-swap (:meth:`hybrid_ir.store.Store.replace`), and goes when
the work ends, however it ends.  Whether a lease has ended is judged by the clock of whoever wants it,
so clocks that differ by more than the lease's length let a second job in early, or keep it out longer.
Even then nothing is lost: the first job finds at its next renewal, or at :meth:`Holder.check` before it
publishes, that ``LEASE`` is another's, and ``CURRENT`` is itself replaced only on the condition that it
is as the job found it; and file names are functions of content, so that two writers write the same bytes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread

from pydantic import ValidationError

from hybrid_ir.errors import Conflict, Damaged, HybridIRError
from hybrid_ir.records import Record
from hybrid_ir.store import Store

NAME = "LEASE"
POLL_S = 1.0
log = logging.getLogger(__name__)


class Lease(Record):
    """What ``LEASE`` says."""

    holder: str
    """For people: the command, its process and host."""
    since: str
    token: str
    """Of one holding; nobody else has it."""
    process: str
    """Names the holder's process so that others on the same machine can tell that it died; empty where unknown."""
    expires_at: float
    """Seconds since 1970, UTC; 0: given back."""


class Holder:
    """The lease as its holder has it."""

    def __init__(self, store: Store, lease: Lease, ttl_s: float, clock: Callable[[], float]) -> None:
        self._store, self._lease, self._ttl_s, self._clock = store, lease, ttl_s, clock
        self._one_at_a_time = Lock()

    def check(self) -> None:
        """Renew now.  Raises :class:`Conflict` where the lease was lost: the caller must not publish."""
        if not self._extend(self._ttl_s):
            held, _ = _read(self._store)
            by = held.holder if held else "someone who removed its LEASE"
            raise Conflict(
                f"{self._store.uri} was taken over by {by}: this job stood still for longer than its lease of "
                f"{self._ttl_s:g} s. Nothing was published. Run the same command again; finished work is kept."
            )

    def keep(self, over: Event) -> None:
        """Renew until ``over``, or until the lease is lost."""
        while not over.wait(self._ttl_s / 3):
            try:
                if not self._extend(self._ttl_s):
                    log.warning("%s: this job lost its lease and will not publish.", self._store.uri)
                    return
            except (HybridIRError, OSError) as error:
                log.warning("%s: the lease could not be renewed (%s); trying again.", self._store.uri, error)

    def release(self) -> None:
        """Remove ``LEASE``; where nothing may be deleted, end it."""
        try:
            with self._one_at_a_time:
                held, version = _read(self._store)
                if held is not None and version is not None and held.token == self._lease.token:
                    self._store.delete_version(NAME, version)
        except (HybridIRError, OSError):
            self._end()

    def _end(self) -> None:
        try:
            self._extend(None)
        except (HybridIRError, OSError) as error:
            log.warning("%s: the lease could not be given back (%s); it ends by itself.", self._store.uri, error)

    def _extend(self, seconds: float | None) -> bool:
        """By so many seconds from now, or to no time at all.  False: the lease is not ours any more."""
        with self._one_at_a_time:
            held, version = _read(self._store)
            if held is None or held.token != self._lease.token:
                return False
            until = 0.0 if seconds is None else self._clock() + seconds
            return self._store.replace(NAME, _bytes(held.model_copy(update={"expires_at": until})), version)


@contextmanager
def held(
    store: Store, ttl_s: float = 60.0, wait_s: float = 0.0, clock: Callable[[], float] = time.time
) -> Iterator[Holder]:
    """Within: the only writer of a root.  Renewed every ``ttl_s / 3`` seconds, given back at the end.

    Waits up to ``wait_s`` seconds for another holder; then raises :class:`Conflict`, which names it.
    """
    holder = _acquire(store, ttl_s, wait_s, clock)
    over = Event()
    thread = Thread(target=holder.keep, args=(over,), daemon=True, name="lease")
    thread.start()
    try:
        yield holder
    finally:
        over.set()
        thread.join()
        holder.release()


def refuse_if_held(store: Store, clock: Callable[[], float] = time.time) -> None:
    """Raise :class:`Conflict` where another holds the root now: a look before work that would be in vain.

    It promises nothing; only :func:`held` does.
    """
    found, _ = _read(store)
    if found is not None and found.expires_at > clock() and not _died(found.process):
        raise _refusal(store, found, clock())


def _refusal(store: Store, found: Lease, now: float) -> Conflict:
    return Conflict(
        f"{store.uri} is being written by {found.holder} since {found.since}; its lease ends in "
        f"{found.expires_at - now:.0f} s unless it renews it. Wait for it with --wait SECONDS, or try again."
    )


def _acquire(store: Store, ttl_s: float, wait_s: float, clock: Callable[[], float]) -> Holder:
    since = datetime.fromtimestamp(clock(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    mine = Lease(holder=_describe(), since=since, token=uuid.uuid4().hex, process=process_name(), expires_at=0)
    until = clock() + wait_s
    while True:
        found, version = _read(store)
        now = clock()
        if found is None or found.expires_at <= now or _died(found.process):
            mine = mine.model_copy(update={"expires_at": now + ttl_s})
            if store.replace(NAME, _bytes(mine), version):
                return Holder(store, mine, ttl_s, clock)
            continue  # someone was faster: see who
        if now >= until:
            raise _refusal(store, found, now)
        time.sleep(min(POLL_S, until - now))


def _read(store: Store) -> tuple[Lease | None, str | None]:
    data, version = store.read_version(NAME)
    if data is None:
        return None, None
    try:
        return Lease.model_validate_json(data), version
    except ValidationError:
        raise Damaged(f"{store.path(NAME)}: not a lease. If no job is writing to this root, delete the file.") from None


def _bytes(lease: Lease) -> bytes:
    return (lease.model_dump_json(indent=1) + "\n").encode()


def _describe() -> str:
    return f"{Path(sys.argv[0]).name or 'python'} (process {os.getpid()} on {socket.gethostname()})"


def process_name(pid: int | None = None) -> str:
    """A name that only this process of this boot of this machine (or container) ever has; empty where unknown.

    "<machine> <pid> <start>": the machine is a digest of the boot id and the namespace of process ids.
    """
    pid = pid or os.getpid()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        machine = hashlib.sha256(f"{boot}{Path('/proc/self/ns/pid').readlink()}".encode()).hexdigest()[:12]
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else f"{machine} {pid} {fields[18]}"


def _died(process: str) -> bool:
    """Whether a holder on this machine is no more; False for one elsewhere, of whom only time can tell."""
    here = process_name().partition(" ")[0]
    machine, _, rest = process.partition(" ")
    return bool(here) and machine == here and process_name(int(rest.split()[0])) != process
