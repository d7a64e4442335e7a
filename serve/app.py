"""The Serve application: ``serve run serve.app:build root=ROOT``, or a Serve config file."""

# No `from __future__ import annotations` here: Serve reads the type of the builder's argument, not its name.
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve import Application, Deployment

from hybrid_ir import settings as settings_module
from hybrid_ir.errors import BadInput
from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.opened import open_index
from hybrid_ir.records import PathName
from hybrid_ir.settings import DeploymentSettings, GraphOwnerSettings, GroupedScorerSettings, Settings
from serve import llm
from serve.controller import Controller
from serve.dense_scorer import DenseGroupScorer, DenseScorer
from serve.errors import RETRY_AFTER_S
from serve.graph_scorer import GraphScorer
from serve.pinned import longest_request_s
from serve.query_encoder import QueryEncoder
from serve.reasoner import Reasoner
from serve.reranker import Reranker
from serve.sparse_scorer import SparseScorer

LOOK_BACK_S = 15.0
"""Of the load that decides how many replicas there are; longer than the 10 s between two reports of it."""
HEALTH_CHECK_PERIOD_S = 10.0
HEALTH_CHECK_TIMEOUT_S = 60.0
"""A replica that is busy is not dead: long enough for a full batch on a slow machine."""


class ServeArguments(BaseModel):
    """What a Serve config file or ``serve run`` gives the builder."""

    model_config = ConfigDict(extra="forbid")

    root: str
    """Where the index lies: a folder that every node sees, or ``s3://bucket/prefix``."""
    config: str | None = None
    """A settings file; without one the build's own settings and the defaults hold."""
    build_id: str | None = None
    """The build to serve, for ever; without one the published one, and the next one when it is published."""
    keys: str | None = None
    """A file of keys, in place of the settings'."""


def build(args: ServeArguments) -> Application:
    """The application that a config file names."""
    settings = settings_module.load(args.config) if args.config else None
    return application(args.root, settings, args.build_id, keys=args.keys)


def application(
    root: str,
    settings: Settings | None = None,
    build_id: str | None = None,
    follow: bool | None = None,
    keys: str | None = None,
) -> Application:
    """A scorer for each path that the build has, the reasoner and the controller, all starting with one build.

    Without ``build_id`` it is the published one, and one that is published later takes over, unless
    ``follow`` says otherwise.

    Raises where the root holds no such build or the settings do not fit it.
    """
    if "://" not in root:
        root = str(Path(root).expanduser().absolute())  # replicas have working folders of their own
    index = open_index(root, settings, build_id)
    settings = index.settings
    if keys is not None:
        settings = settings.model_copy(update={"serve": settings.serve.model_copy(update={"keys": keys})})
    pinned, wanted = (root, index.build_id, settings), settings.serve
    longest = longest_request_s(index.settings)

    def deployment(kind: Callable[..., Any], field: str, group: ShardGroup = EVERYTHING) -> Deployment:
        name = kind.__name__ if group.of == 1 else f"{kind.__name__}{group.number + 1}"
        return serve.deployment(name=name, **options(field, getattr(wanted, field), longest))(kind)

    encoder = deployment(QueryEncoder, "query_encoder").bind(*pinned) if wanted.query_encoder else None
    owners = []
    if wanted.graph_owner:
        from serve.graph_owner import GraphOwner, check  # torch-geometric belongs to an extra of its own

        check(settings)
        for group in groups_of(wanted.graph_owner):
            owners.append(deployment(GraphOwner, "graph_owner", group).bind(*pinned, group=group))
    graph = deployment(GraphScorer, "graph_scorer").bind(*pinned, encoder=encoder, owners=owners)
    scorers: dict[PathName, list[Application]] = {"graph": [graph], "dense": []}
    for group in groups_of(wanted.dense_scorer):
        if group.of == 1:
            scorers["dense"].append(deployment(DenseScorer, "dense_scorer").bind(*pinned, encoder=encoder))
        else:
            part = deployment(DenseGroupScorer, "dense_scorer", group)
            scorers["dense"].append(part.bind(*pinned, group=group, encoder=encoder))
    if "sparse" in index.path_names:
        scorers["sparse"] = [
            deployment(SparseScorer, "sparse_scorer", group).bind(*pinned, group=group)
            for group in groups_of(wanted.sparse_scorer)
        ]
    language_model = _language_model(index.settings, longest)
    reasoner = deployment(Reasoner, "reasoner").bind(*pinned, language_model=language_model)
    reranker = deployment(Reranker, "reranker").bind(*pinned) if index.settings.rerank else None
    ingress = deployment(serve.ingress()(Controller), "controller")
    follow = build_id is None if follow is None else follow  # who names a build wants that one
    return ingress.bind(*pinned, scorers=scorers, reasoner=reasoner, reranker=reranker, encoder=encoder, follow=follow)


def groups_of(settings: GroupedScorerSettings | GraphOwnerSettings) -> list[ShardGroup]:
    return [ShardGroup(number, settings.groups) for number in range(settings.groups)]


def starts_vllm(settings: Settings) -> bool:
    """Whether a language model is a deployment of the application: building it connects to Ray."""
    return settings.reasoner.kind == "llm" and settings.reasoner.llm.backend == "vllm"


def llm_cpus(settings: Settings) -> float:
    """That its replicas set aside."""
    chosen = settings.reasoner
    if chosen.kind != "llm" or chosen.llm.backend != "vllm":
        return 0.0
    workers = sum(bundle.get("CPU", 0.0) for bundle in chosen.llm.bundles or [{"CPU": 1.0}])
    return (1.0 + workers) * max(chosen.llm.min_replicas, chosen.llm.max_replicas)


def _language_model(settings: Settings, longest_request_s: float) -> Application | None:
    chosen = settings.reasoner
    if chosen.kind != "llm" or chosen.llm.backend != "vllm":
        return None
    return llm.deployment(
        chosen.llm,
        {
            "health_check_period_s": HEALTH_CHECK_PERIOD_S,
            "health_check_timeout_s": HEALTH_CHECK_TIMEOUT_S,
            "graceful_shutdown_timeout_s": longest_request_s + 10.0,
            "graceful_shutdown_wait_loop_s": 0.2,
            "max_constructor_retry_count": 3,
        },
    )


def options(name: str, settings: DeploymentSettings, longest_request_s: float) -> dict[str, Any]:
    """Serve's deployment options; ``name`` is the field of ``ServeSettings``, for errors."""
    if settings.max_replicas < settings.min_replicas:
        raise BadInput(
            f"serve.{name}: max_replicas is {settings.max_replicas}, below min_replicas ({settings.min_replicas})."
        )
    scale: dict[str, Any] = {"num_replicas": settings.min_replicas}
    if settings.max_replicas > settings.min_replicas:
        _check_delays(name, settings)
        scale = {
            "autoscaling_config": {
                "min_replicas": settings.min_replicas,
                # At least one at first: a replica that cannot start is to be known before the first question.
                "initial_replicas": max(1, settings.min_replicas),
                "max_replicas": settings.max_replicas,
                "target_ongoing_requests": max(1, settings.max_ongoing_requests // 2),
                "look_back_period_s": LOOK_BACK_S,
                "upscale_delay_s": settings.upscale_delay_s,
                "downscale_delay_s": settings.downscale_delay_s,
            }
        }
    return {
        **scale,
        "ray_actor_options": {"num_cpus": settings.num_cpus, "num_gpus": settings.num_gpus},
        "max_ongoing_requests": settings.max_ongoing_requests,
        "max_queued_requests": settings.max_queued_requests,
        "backpressure_config": {"status_code": 429, "retry_after_s": RETRY_AFTER_S},
        "health_check_period_s": HEALTH_CHECK_PERIOD_S,
        "health_check_timeout_s": HEALTH_CHECK_TIMEOUT_S,
        # A replica that is being replaced finishes its requests first.
        "graceful_shutdown_timeout_s": longest_request_s + 10.0,
        "graceful_shutdown_wait_loop_s": 0.2,
        "max_constructor_retry_count": 3,
    }


def _check_delays(name: str, settings: DeploymentSettings) -> None:
    """Replicas that came and went with every burst, or went as soon as they were ready, would only ever start."""
    least = max(LOOK_BACK_S, 2 * settings.cold_start_s)
    for field, value, wanted, why in (
        ("upscale_delay_s", settings.upscale_delay_s, LOOK_BACK_S, "the time that load is averaged over"),
        ("downscale_delay_s", settings.downscale_delay_s, least, f"twice serve.{name}.cold_start_s or that time"),
    ):
        if value < wanted:
            raise BadInput(f"serve.{name}.{field} is {value:g}; make it at least {wanted:g} s, {why}.")
