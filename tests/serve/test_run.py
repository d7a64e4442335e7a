"""What is decided before Ray starts: the port, the settings, the build."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from ray.serve.schema import ApplicationStatusOverview, ServeDeploySchema

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.settings import DeploymentSettings, ScorerSettings, Settings
from serve.app import ServeArguments, application, build, options
from serve.run import free_port, reason, run

CONFIG = Path(__file__).parents[2] / "configs" / "serve.yaml"


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=rf"^Port {port} is in use; choose another with --port\.$"):
            free_port("127.0.0.1", port)
    assert free_port("127.0.0.1", port) == port


def test_port_0_takes_a_free_one():
    assert 20_000 <= free_port("127.0.0.1", 0) < 32_768


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_no_port_is_one_that_is_refused(tmp_path, port):
    said = []
    with pytest.raises(BadInput, match=f"--port {port}: a port is a number from 0"):
        run(str(tmp_path), port=port, say=said.append)
    assert not said


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_a_host_that_is_not_ours(host):
    with pytest.raises(BadInput, match=re.escape(host)):
        free_port(host, 8000)


def test_no_index_is_said_before_ray_starts(tmp_path):
    import ray

    with pytest.raises(NotFound, match="hybrid-ir index"):
        run(str(tmp_path))
    assert not ray.is_initialized()


def test_a_wrong_build_or_settings_file_is_said_by_the_builder(tmp_path):
    with pytest.raises(NotFound, match="no build nope"):
        application(str(tmp_path), None, "nope")
    with pytest.raises(NotFound, match=re.escape("none.yaml")):
        build(ServeArguments(root=str(tmp_path), config=str(tmp_path / "none.yaml")))
    with pytest.raises(ValidationError, match="rooot"):
        ServeArguments.model_validate({"rooot": "x"})


def test_serve_gives_the_builder_typed_arguments(tmp_path):
    from ray.serve._private.api import call_user_app_builder_with_args_if_necessary as call

    with pytest.raises(NotFound, match="hybrid-ir index"):
        call(build, {"root": str(tmp_path)})
    with pytest.raises(ValidationError, match="rooot"):
        call(build, {"rooot": str(tmp_path)})


def test_replicas_scale_only_when_there_is_room():
    fixed = options("reasoner", DeploymentSettings(min_replicas=2, max_replicas=2), 300)
    assert fixed["num_replicas"] == 2
    assert "autoscaling_config" not in fixed
    scaled = options("reasoner", DeploymentSettings(min_replicas=1, max_replicas=4), 300)
    assert "num_replicas" not in scaled
    scaling = scaled["autoscaling_config"]
    assert scaling["upscale_delay_s"] > scaling["look_back_period_s"]
    assert scaling["downscale_delay_s"] > scaling["look_back_period_s"]
    with pytest.raises(BadInput, match=r"serve\.reasoner"):
        options("reasoner", DeploymentSettings(min_replicas=3, max_replicas=2), 300)


def test_a_scorer_may_go_to_zero_and_starts_with_one():
    scaled = options("dense_scorer", ScorerSettings(min_replicas=0, max_replicas=2), 300)["autoscaling_config"]
    assert (scaled["min_replicas"], scaled["initial_replicas"]) == (0, 1)
    with pytest.raises(ValidationError, match="min_replicas"):
        Settings.model_validate({"serve": {"controller": {"min_replicas": 0}}})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"upscale_delay_s": 3}, r"serve\.dense_scorer\.upscale_delay_s is 3; make it at least 15 s"),
        ({"downscale_delay_s": 100}, r"serve\.dense_scorer\.downscale_delay_s is 100; make it at least 120 s"),
        ({"downscale_delay_s": 9, "cold_start_s": 1}, r"at least 15 s"),
    ],
)
def test_replicas_do_not_go_sooner_than_they_come(given, said):
    with pytest.raises(BadInput, match=said):
        options("dense_scorer", ScorerSettings(max_replicas=2, **given), 300)


def test_a_draining_replica_outlives_every_request():
    assert options("controller", Settings().serve.controller, 300)["graceful_shutdown_timeout_s"] > 300


def test_the_reason_of_a_failed_start_is_the_librarys_sentence():
    trace = (
        "The deployment failed to start 3 times in a row.\nTraceback (most recent call last):\n"
        '  File "opened.py", line 1, in __init__\n'
        "ray.exceptions.RayTaskError(Damaged): details\nhybrid_ir.errors.Damaged: a.npy: the file is missing.\n"
    )
    found = ApplicationStatusOverview("DEPLOY_FAILED", trace, 0.0, {})
    assert reason(found) == "a.npy: the file is missing."


def test_the_config_file_is_one_that_serve_takes():
    config = ServeDeploySchema.model_validate(yaml.safe_load(CONFIG.read_text(encoding="utf-8")))
    (found,) = config.applications
    assert found.import_path == "serve.app:build"
    ServeArguments.model_validate(found.args)
    assert config.http_options.host == "127.0.0.1"
