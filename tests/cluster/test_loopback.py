"""A Ray that a job starts for itself is nobody else's."""

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.usefixtures("shared_ray")]


def test_no_process_of_a_jobs_own_ray_listens_beyond_this_machine():
    found = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            found |= {one.laddr.ip for one in process.net_connections(kind="inet") if one.status == psutil.CONN_LISTEN}
        except psutil.Error:
            continue
    assert found
    assert {ip.removeprefix("::ffff:") for ip in found} <= {"127.0.0.1", "::1"}
