"""The one kind of error a person is meant to read."""


class HybridIRError(Exception):
    """A sentence that names the file, field or row at fault and says what to do.

    The command line prints it without a traceback and exits with ``exit_code``;
    the HTTP service returns it with ``http_status``.
    """

    exit_code = 2
    http_status = 400


class BadInput(HybridIRError):
    """What the user gave cannot be used: a file, a field, an option, a question."""


class NotFound(HybridIRError):
    """Something asked for by name (a build, a chunk) does not exist."""

    exit_code = 3
    http_status = 404


class Conflict(HybridIRError):
    """Two things that must agree do not: an index and its encoder, two jobs on one root."""

    exit_code = 4
    http_status = 409


class Damaged(HybridIRError):
    """A file of a build is missing, truncated, or does not match its checksum."""

    exit_code = 5
    http_status = 503


class Unavailable(HybridIRError):
    """A service that is needed (an object store, a language model) does not answer, after all tries."""

    exit_code = 6
    http_status = 503


class Failed(HybridIRError):
    """Something outside the data failed: a disk is full, a worker died too often.  Running again goes on."""

    exit_code = 6
    http_status = 503
