"""Commands that look after a root: what it holds, whether it is whole, which build is published.  They need no Ray."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from hybrid_ir.terminal import AsJson, Root, Wait, print_json, say_build


def rollback(
    root: Root,
    build: Annotated[str | None, typer.Argument(help="A build's id; default: the one before the published.")] = None,
    wait: Wait = 0.0,
    json_: AsJson = False,
) -> None:
    """Publish an earlier build again."""
    from hybrid_ir.index import manifest, retention
    from hybrid_ir.lease import held
    from hybrid_ir.store import Store

    store = Store(root)
    manifest.read(store)  # a root without an index is no place for a lease
    with held(store, wait_s=wait):
        say_build(retention.rollback(store, build), root, json_)


def gc(
    root: Root,
    keep: Annotated[int, typer.Option(help="Builds to keep: the published one and those before it.")] = 2,
    cache: Annotated[bool, typer.Option("--cache", help="Cached model results as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only say what would go.")] = False,
    wait: Wait = 0.0,
    json_: AsJson = False,
) -> None:
    """Delete what no kept build needs, after saying what.  Not while a job is running on the root."""
    from hybrid_ir.index import manifest, retention
    from hybrid_ir.lease import held
    from hybrid_ir.store import Store

    store = Store(root)
    if not any(store.files(folder) for folder in ("segments", "work", "builds")):
        manifest.read(store)  # says that there is no index; a root without any is no place for a lease
    with held(store, wait_s=wait) if yes else nullcontext():  # what no job is writing at the moment
        found = retention.garbage(store, keep, cache)
        if json_:
            left = {"unfinished": found.unfinished, "files": found.files, "bytes": found.bytes}
            print_json({"kept": found.kept, "builds": found.builds, **left})
        else:
            kept, gone = ", ".join(found.kept) or "none", ", ".join(found.builds) or "none"
            typer.echo(f"kept builds: {kept}; builds to go: {gone}; {len(found.files)} files, {found.bytes:,} bytes")
            if found.unfinished:
                typer.echo(f"{len(found.unfinished)} of the files were left by jobs that did not finish.")
        if yes:
            retention.collect(store, found)
    if yes:
        typer.echo("Deleted.", err=True)
    elif found.files:
        typer.echo(f"Nothing was deleted. To delete: hybrid-ir gc --root {root} --keep {keep} --yes", err=True)


def inspect(
    root: Root,
    chunk: Annotated[str | None, typer.Option(help="Show one chunk with its mentions and triples.")] = None,
    entity: Annotated[str | None, typer.Option(help="Show one entity with its triples and chunks.")] = None,
    errors: Annotated[bool, typer.Option("--errors", help="List every error record.")] = False,
    documents: Annotated[
        bool, typer.Option("--documents", help="List the documents: id, chunks, title, file.")
    ] = False,
    builds: Annotated[bool, typer.Option("--builds", help="List the builds that rollback can publish.")] = False,
    json_: AsJson = False,
) -> None:
    """Show what an index holds: counts, and what could not be used and why."""
    from hybrid_ir.index import inspection, manifest
    from hybrid_ir.store import Store

    store = Store(root)
    found = manifest.read(store)
    if chunk is not None:
        contents = inspection.chunk(store, found, chunk)
        if json_:
            print_json(contents.model_dump(mode="json"))
            return
        piece = contents.chunk
        typer.echo(f"{piece.id}  {piece.title}{' > ' + piece.section if piece.section else ''}")
        typer.echo(f"{piece.source} {piece.locator} characters {piece.start}-{piece.end}\n\n{piece.text}\n")
        typer.echo(f"mentions: {', '.join(contents.mentions) or 'none'}")
        for triple in contents.triples:
            typer.echo(f"  ({', '.join(triple)})")
        return
    if entity is not None:
        about = inspection.entity(store, found, entity)
        if json_:
            print_json(about.model_dump(mode="json"))
            return
        typer.echo(f"{about.name}  synonyms: {', '.join(about.synonyms) or 'none'}")
        for triple in about.triples:
            typer.echo(f"  ({', '.join(triple)})")
        typer.echo(f"chunks: {', '.join(about.chunks)}")
        return
    if documents:
        held = inspection.documents(store, found)
        if json_:
            print_json(held)
        else:
            for item in held:
                typer.echo(f"{item['id']}\t{item['chunks']}\t{item['title']}\t{item['source']}")
        return
    if builds:
        from hybrid_ir.index import retention

        for made in retention.builds(store):
            mark = "published" if made.build_id == found.build_id else f"before it: {made.parent or 'none'}"
            typer.echo(f"{made.build_id}\t{made.counts.documents} documents\t{mark}")
        return
    rows = inspection.errors(store, found)
    if errors:
        if json_:
            print_json(rows)
        else:
            for row in rows:
                typer.echo(f"{row['stage']}\t{row['subject']}\t{row['source']}\t{row['reason']}")
        return
    kinds = inspection.error_kinds(rows)
    if json_:
        body = {
            "build_id": found.build_id,
            "counts": found.counts,
            "partitions": found.partitions,
            "resolution": found.resolution,
            "fingerprints": found.fingerprints,
            "errors": kinds,
        }
        print_json(body)
        return
    typer.echo(f"build {found.build_id} in {root}")
    for name, value in found.counts.model_dump().items():
        typer.echo(f"  {name.replace('_', ' '):<18} {value:>12,}")
    if found.partitions is not None:
        division = found.partitions
        kept = f", {division.kept:,} entities as before" if division.kept else ""
        typer.echo(
            f"  graph partitions   {division.count:>12,}  {division.method}, "
            f"{division.cut:.1%} of edges between them{kept}"
        )
    if found.resolution is not None:
        known = "unknown" if found.resolution.recall is None else f"{found.resolution.recall:.1%}"
        typer.echo(f"  synonyms by        {found.resolution.clusters:>12,}  clusters, estimated recall {known}")
    typer.echo(f"  encoder            {found.fingerprints.chunk_encoder['model']}")
    typer.echo(f"  extractor          {found.fingerprints.extractor['kind']}")
    for kind in kinds[:10]:
        typer.echo(f"  {kind.count} x {kind.stage}: {kind.reason}  e.g. {kind.example}")
    if len(kinds) > 10:
        typer.echo(
            f"  … and {len(kinds) - 10} more kinds of error; all of them: hybrid-ir inspect --root {root} --errors"
        )


def verify(root: Root, json_: AsJson = False) -> None:
    """Check every file of the published build against its checksum."""
    from hybrid_ir.index import manifest
    from hybrid_ir.store import Store

    store = Store(root)
    found = manifest.read(store)
    faults = manifest.verify(store, found)
    files = len(found.all_files())
    if json_:
        print_json({"build_id": found.build_id, "files": files, "faults": faults})
    else:
        for fault in faults:
            typer.echo(fault)
        typer.echo(f"build {found.build_id}: {files} files, {len(faults)} at fault")
    if faults:
        raise typer.Exit(5)
