"""``hybrid-ir replay``."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from hybrid_ir.errors import BadInput
from hybrid_ir.terminal import AsJson, Config, options_of, print_json


def replay(
    trace: Annotated[str, typer.Argument(metavar="FILE", help="What hybrid-ir ask --trace FILE wrote.")],
    root: Annotated[
        str | None, typer.Option("--root", help="The index; for a trace without texts, or of the extractive reasoner.")
    ] = None,
    question: Annotated[str | None, typer.Option("--question", help="As asked; for a trace without texts.")] = None,
    option: Annotated[list[str] | None, typer.Option("--option", help="As asked, A=text; may be repeated.")] = None,
    config: Config = None,
    json_: AsJson = False,
) -> None:
    """Run a traced question again without its language model, and say whether the answer is the same.

    Exit code 1 where it is not.
    """
    from hybrid_ir import render
    from hybrid_ir.reasoning import replay as replaying
    from hybrid_ir.reasoning.prompt_files import load_prompts
    from hybrid_ir.reasoning.trace import read_trace

    if option and question is None:
        raise BadInput("--option needs --question.")
    if root is not None:
        import hybrid_ir

        done = hybrid_ir.open(root, config).replay(trace, question, options_of(option or []))
    else:
        if question is not None:
            raise BadInput("--question needs --root: the index has the texts that the trace does not hold.")
        done = asyncio.run(replaying.replay(read_trace(trace), prompts=load_prompts(_overrides(config))))
    if json_:
        print_json(
            {
                "same": done.same,
                "differences": done.differences,
                "unknown": done.unknown,
                "answer": done.answer.model_dump(mode="json"),
            }
        )
    else:
        typer.echo(render.answer(done.answer))
        typer.echo("")
        if done.same:
            typer.echo("The answer is the same.")
        else:
            unknown = f"; {done.unknown} prompts or queries are not in the trace" if done.unknown else ""
            typer.echo(f"The answer differs in: {', '.join(done.differences)}{unknown}.")
            if done.cut_off:
                typer.echo("The question was cut off by its deadline, which falls elsewhere in each run.")
    if not done.same:
        raise typer.Exit(1)


def _overrides(config: str | None) -> dict[str, str]:
    from hybrid_ir.settings import load

    reasoner = load(config).reasoner if config else None
    return dict(reasoner.prompts) if reasoner is not None and reasoner.kind == "llm" else {}
