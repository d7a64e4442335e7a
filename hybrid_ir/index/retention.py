"""Builds that are kept, and files that no kept build needs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hybrid_ir.errors import BadInput
from hybrid_ir.index import layout, manifest
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.store import Store


def builds(store: Store) -> list[Manifest]:
    """Every whole build of a root, in the order of their ids."""
    names = [name for name in store.files("builds") if name.endswith("/manifest.json")]
    return [manifest.read(store, name.split("/")[1]) for name in names]


def rollback(store: Store, build_id: str | None) -> Manifest:
    """Publish an earlier build: the one named, else the one that the published build changed.

    Its files are checked first; a damaged build is not published.
    """
    now = manifest.read(store)
    target = build_id or now.parent
    if target is None:
        others = ", ".join(made.build_id for made in builds(store) if made.build_id != now.build_id) or "none"
        raise BadInput(f"Build {now.build_id} changed no other; name the one to publish. There are: {others}.")
    wanted = manifest.read(store, target)
    faults = manifest.verify(store, wanted)
    if faults:
        raise BadInput(f"Build {target} is damaged and was not published: {faults[0]}")
    manifest.publish(store, wanted, now.build_id)
    return wanted


@dataclass(frozen=True)
class Garbage:
    """What can go, by name, with its bytes."""

    files: dict[str, int]
    builds: tuple[str, ...]
    kept: tuple[str, ...]
    unfinished: tuple[str, ...]
    """Those of the files that jobs left which failed, were killed, or have not come to their end."""

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


def garbage(store: Store, keep: int, cache: bool = False) -> Garbage:
    """All files that the published build and the ``keep - 1`` builds before it do not need.

    What a job that did not finish left in ``work`` and ``segments`` counts as garbage too: call
    this only where no job is running.  On a root where nothing was ever published that is all there
    is.  ``cache``: whether cached model results go as well.
    """
    if keep < 1:
        raise BadInput(f"keep is {keep}; the published build is always kept, so ask for 1 or more.")
    kept: list[Manifest] = []
    following = manifest.current(store)
    whole = {name.split("/")[1] for name in store.files("builds") if name.endswith("/manifest.json")}
    if following is None and whole:
        raise BadInput(
            f"{store.uri}: there are whole builds ({', '.join(sorted(whole))}) and none is published, so all would go. "
            "Run the command that made one again: it publishes it."
        )
    if following is not None:
        manifest.read(store)  # one that cannot be read must not look like none
    while following is not None and len(kept) < keep and store.exists(layout.manifest(following)):
        kept.append(manifest.read(store, following))
        following = kept[-1].parent
    needed = {name for made in kept for name in made.all_files()}
    for made in kept:
        needed |= {layout.manifest(made.build_id), layout.report(made.build_id)}
        folder = layout.build(made.build_id)
        needed |= {name for name in store.files(folder) if name.endswith(".html")}
        for segment in made.segments:
            needed |= {name for name in store.files(layout.segment(segment.id)) if "/done/" in name}
    folders = ["builds", "segments", "work", *(["cache"] if cache else [])]
    files = {name: store.size(name) for folder in folders for name in store.files(folder) if name not in needed}
    dropped = {name.split("/")[1] for name in files if name.startswith("builds/") and name.endswith("/manifest.json")}
    used = {segment for build_id in whole for segment in _segments(store, build_id)}
    unfinished = [
        name
        for name in files
        if name.startswith("work/")
        or (name.startswith("segments/") and name.split("/")[1] not in used)
        or (name.startswith("builds/") and name.split("/")[1] not in whole)
    ]
    return Garbage(files, tuple(sorted(dropped)), tuple(made.build_id for made in kept), tuple(unfinished))


def _segments(store: Store, build_id: str) -> list[str]:
    """The segments of a build of whatever format."""
    try:
        return [str(segment["id"]) for segment in json.loads(store.read(layout.manifest(build_id)))["segments"]]
    except (ValueError, KeyError, TypeError):
        return []


def collect(store: Store, found: Garbage) -> None:
    """Delete; manifests first, so that no build is believed whose files are going."""
    for name in sorted(found.files, key=lambda name: (not name.endswith("manifest.json"), name)):
        store.delete(name)
