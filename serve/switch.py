"""From one build to the next without a request that fails or that sees two."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hybrid_ir.errors import Damaged, HybridIRError
from hybrid_ir.index import manifest
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.store import Store
from serve.errors import original
from serve.schemas import Refused
from serve.service import Service

AGAIN_S = 60.0
"""A build that was refused is looked at again after so long: a node may only just have come back."""

log = logging.getLogger(__name__)


class Served:
    """The service of now.  A request takes it once and keeps it to its end."""

    def __init__(self, service: Service) -> None:
        self.now = service
        self.refused: Refused | None = None


class Follower:
    """Watches which build is published, and has the service of a new one take over when all its parts answer."""

    def __init__(
        self,
        served: Served,
        store: Store,
        make: Callable[[Manifest], Service],
        warm: Callable[[Service], Awaitable[None]],
        poll_s: float,
    ) -> None:
        """``make`` opens a build's service; ``warm`` returns when every replica has the build open."""
        self._served, self._store, self._make, self._warm, self._poll_s = served, store, make, warm, poll_s
        self._refused_at = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self.look()
            except Exception:  # the service goes on with what it has
                log.exception("Could not look for a newer build")

    async def look(self) -> None:
        wanted = await asyncio.to_thread(manifest.current, self._store)
        served, clock = self._served, asyncio.get_running_loop().time
        if wanted is None or wanted == served.now.manifest.build_id:
            served.refused = None
            return
        if served.refused and served.refused.build_id == wanted and clock() < self._refused_at + AGAIN_S:
            return
        try:
            service = await asyncio.to_thread(self._opened, wanted)
            await self._warm(service)
        except Exception as error:
            inner = original(error)
            reason = str(inner) if isinstance(inner, HybridIRError) else f"{type(inner).__name__}; the log says more."
            log.warning("Build %s is not served, %s goes on: %s", wanted, served.now.manifest.build_id, reason)
            if not isinstance(inner, HybridIRError):
                log.error("Opening build %s failed", wanted, exc_info=error)
            served.refused, self._refused_at = Refused(build_id=wanted, reason=reason), clock()
            return
        before = served.now.manifest.build_id
        served.now, served.refused = service, None
        log.warning("Serving build %s in place of %s", wanted, before)

    def _opened(self, build_id: str) -> Service:
        found = manifest.read(self._store, build_id)
        known = self._served.now.manifest.all_files()
        faults = manifest.verify(self._store, found, known)
        if faults:
            more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
            raise Damaged(f"{faults[0]}{more} Index again, or roll back: hybrid-ir rollback.")
        return self._make(found)
