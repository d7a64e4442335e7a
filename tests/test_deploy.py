"""The files that put this on a cluster: each by the schema of what reads it, and by what we promise of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from ray.serve.schema import ServeDeploySchema

from hybrid_ir.settings import load
from ray_jobs.benchmark import parser as benchmark_parser
from ray_jobs.index import parser
from serve.app import ServeArguments

PROJECT = Path(__file__).parent.parent
KUBERAY = sorted((PROJECT / "deploy" / "kuberay").glob("*.yaml"))


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def cluster_of(spec):
    return spec.get("rayClusterConfig") or spec["rayClusterSpec"]


def groups_of(spec):
    cluster = cluster_of(spec)
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def test_the_cluster_launcher_takes_our_cluster():
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = read(PROJECT / "cluster.yaml")
    validate_config(prepare_config(config))  # Ray's own JSON schema
    starts = [line for key in ("head", "worker") for line in config[f"{key}_start_ray_commands"] if "ray start" in line]
    assert len(starts) == 2
    assert all("RAY_AUTH_MODE=token" in line for line in starts)
    assert "--dashboard-host=127.0.0.1" in starts[0]
    assert "/home/ubuntu/.ray/auth_token" in config["file_mounts"]
    assert any(".git/" in pattern for pattern in config["rsync_exclude"])


@pytest.mark.parametrize("path", KUBERAY, ids=lambda path: path.name)
def test_a_manifest_is_safe_by_default_and_whole(path):
    found = read(path)
    assert found["apiVersion"] == "ray.io/v1"
    cluster = cluster_of(found["spec"])
    assert cluster["authOptions"] == {"mode": "token"}
    assert tuple(map(int, cluster["rayVersion"].split("."))) >= (2, 52)
    for group in groups_of(found["spec"]):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert not any("value" in variable and "TOKEN" in variable["name"] for variable in container.get("env", []))
    names = [group["groupName"] for group in cluster["workerGroupSpecs"]]
    assert len(names) == len(set(names))
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.parametrize(
    "config",
    [
        read(PROJECT / "configs" / "serve.yaml"),
        yaml.safe_load(read(PROJECT / "deploy" / "kuberay" / "rayservice.yaml")["spec"]["serveConfigV2"]),
    ],
    ids=["configs/serve.yaml", "rayservice.yaml"],
)
def test_serve_takes_our_application(config):
    checked = ServeDeploySchema.model_validate(config)
    (application,) = checked.applications
    assert application.import_path == "serve.app:build"
    arguments = ServeArguments.model_validate(application.args)
    if config["http_options"]["host"] != "127.0.0.1":
        assert arguments.keys


@pytest.mark.parametrize("path", [path for path in KUBERAY if "rayjob" in path.name], ids=lambda path: path.name)
def test_a_jobs_command_is_one(path):
    words = read(path)["spec"]["entrypoint"].split()
    assert words[:2] == ["python", "-m"]
    parsers = {"ray_jobs.index": parser, "ray_jobs.benchmark": benchmark_parser}
    given = parsers[words[2]]().parse_args(words[3:])
    assert given.config == "/etc/hybrid-ir/settings.yaml"


@pytest.mark.parametrize("name", ["local", "cluster", "paper"])
def test_every_settings_file_loads(name):
    load(PROJECT / "configs" / f"{name}.yaml")


def test_the_dashboard_shows_metrics_that_there_are():
    text = (PROJECT / "deploy" / "grafana.json").read_text(encoding="utf-8")
    shown = set(re.findall(r"ray_(hybrid_ir_\w+?)(?:_bucket|_total)?[\[{]", text))
    source = "".join(path.read_text(encoding="utf-8") for path in (PROJECT / "serve").glob("*.py"))
    there = set(re.findall(r'"(hybrid_ir_\w+)"', source))
    assert shown
    assert shown <= there
    panels = json.loads(text)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_image_has_what_it_copies():
    text = (PROJECT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", text, re.MULTILINE) for name in line.split()]
    assert {"hybrid_ir", "ray_jobs", "serve", "pyproject.toml"} <= set(copied)
    assert all((PROJECT / name).exists() for name in copied)
    assert re.search(r"^USER ray$", text, re.MULTILINE)
