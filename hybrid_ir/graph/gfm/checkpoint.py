"""Reading a published checkpoint: only tensors, and all of them as expected."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import torch
from torch import Tensor

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.graph.gfm.config import read_config
from hybrid_ir.graph.gfm.network import GFM

NAMES_SHOWN = 5


def load(folder: str | Path) -> GFM:
    """The network with its weights, in fp32 on the CPU, ready to score.

    Raises NotFound where a file is missing, and BadInput with the tensors' names where one is
    missing, unknown, misshapen, or holds NaN.
    """
    config = read_config(folder)
    path = Path(folder) / "model.pth"
    if not path.exists():
        raise NotFound(f"{path}: no such file; a GFM checkpoint is a folder with config.json and model.pth.")
    try:
        # Nothing but tensors and plain containers is unpickled; the optimizer's state is left alone.
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, OSError, ValueError) as error:
        raise BadInput(f"{path}: not a whole PyTorch weights file ({str(error).splitlines()[0]}).") from error
    if not isinstance(held, dict) or not isinstance(held.get("model"), dict):
        raise BadInput(f"{path}: has no entry `model` with the network's tensors.")
    state: dict[str, Tensor] = held["model"]
    with torch.device("meta"):
        network = GFM(config)
    _check(state, network.state_dict(), path)
    network.load_state_dict({name: tensor.float().clone() for name, tensor in state.items()}, strict=True, assign=True)
    return network.eval().requires_grad_(False)


def fingerprint(folder: str | Path) -> str:
    """The first 16 hex digits of the weights' sha256: what a background and projections are bound to."""
    with (Path(folder) / "model.pth").open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


def _check(found: dict[str, Tensor], wanted: dict[str, Tensor], path: Path) -> None:
    missing, unknown = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    wrong = [
        f"{name} is {tuple(found[name].shape)}, expected {tuple(wanted[name].shape)}"
        for name in sorted(wanted.keys() & found.keys())
        if found[name].shape != wanted[name].shape
    ]
    faults = [
        f"{what}: {', '.join(names[:NAMES_SHOWN])}"
        + (f" and {len(names) - NAMES_SHOWN} more" if names[NAMES_SHOWN:] else "")
        for what, names in (("missing", missing), ("unknown", unknown), ("of another shape", wrong))
        if names
    ]
    if not faults:
        broken = [name for name, tensor in found.items() if not bool(torch.isfinite(tensor).all())]
        faults = [f"NaN or infinite values: {', '.join(broken[:NAMES_SHOWN])}"] if broken else []
    if faults:
        raise BadInput(f"{path} does not fit its config.json. Tensors {'; '.join(faults)}.")
