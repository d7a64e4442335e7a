"""A file of a dataset on the Hugging Face hub: ``hub:OWNER/NAME/PATH``, or ``hub:OWNER/NAME@REVISION/PATH``.

It is downloaded once, into the hub library's own cache (``HF_HOME``), and found there without a network.
"""

from __future__ import annotations

from pathlib import Path

from hybrid_ir.errors import BadInput, Unavailable

PREFIX = "hub:"


def file(name: str) -> Path:
    """Where the file lies.  Raises BadInput for what the hub does not have, Unavailable where it does not answer."""
    parts = name.removeprefix(PREFIX).split("/", 2)
    if len(parts) < 3 or not all(parts):
        raise BadInput(f"{name}: name a file of a dataset as hub:OWNER/NAME/PATH or hub:OWNER/NAME@REVISION/PATH.")
    dataset, _, revision = parts[1].partition("@")
    repository = f"{parts[0]}/{dataset}"
    # it belongs to the extra ``local``
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(hf_hub_download(repository, parts[2], repo_type="dataset", revision=revision or None))
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise BadInput(f"{name}: the hub has no such dataset, or no such revision, for you.") from error
    except LocalEntryNotFoundError as error:  # one of the entries that are not found, for want of a network
        raise _unreachable(name, error) from error
    except EntryNotFoundError as error:
        raise BadInput(f"{name}: the dataset {repository} has no file {parts[2]}.") from error
    except Exception as error:  # of the network, the hub, the disk: the library names dozens
        raise _unreachable(name, error) from error


def _unreachable(name: str, error: Exception) -> Unavailable:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return Unavailable(
        f"{name} could not be downloaded ({reason}). Without a network, bring the file and name its path."
    )
