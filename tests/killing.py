"""Ending a job as a machine that goes down would."""

import os
import signal
import subprocess
import time

import psutil


def kill(job: subprocess.Popen) -> None:
    """Kill a job that was started in a session of its own, and wait for Ray's workers, which end by themselves."""
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    end = time.monotonic() + 60
    while _alive(job.pid):
        assert time.monotonic() < end, "workers of a killed job live on"
        time.sleep(0.1)


def _alive(session: int) -> bool:
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                return True
        except (ProcessLookupError, psutil.Error):
            pass
    return False
