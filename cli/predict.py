"""`archive predict`: the result of a network before it is trained."""

from __future__ import annotations

import click

from archive.cli.architecture.argument import architecture_of, input_option, is_key
from archive.cli.names import TASK
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_table,
    show,
)
from archive.values import counted


@click.command(short_help="Predict the result of a network before it is trained.")
@click.argument("network")
@click.option("--task", type=TASK, required=True, help="Task with results, of any network.")
@click.option(
    "--protocol",
    required=True,
    metavar="NAME",
    help="How the network would be trained and measured, timm/a1_in1k@224.",
)
@click.option(
    "--metric",
    metavar="NAME",
    show_default="the objective",
    help="Metric of the results to predict, latency_ms.",
)
@input_option
@click.option("-k", "--k", type=Count(0), default=5, help="Number of relatives to name.")
@json_option
@click.pass_context
def predict(
    ctx: click.Context,
    network: str,
    task: str,
    protocol: str,
    metric: str | None,
    inputs: tuple[str, ...],
    k: int,
    as_json: bool,
) -> None:
    """Predict the result of a network from its graph and the recipe, with an interval.

    NETWORK is as for archive arch nearest: a key of the archive, a file, a text or a model. It need
    not be in the archive. The model is fitted to the archive's results of the task. PROTOCOL may be
    one without results: the words that it shares with others count, and @SIDE at its end is the
    side of the test images.

    The interval holds with a probability of 90 %: it is corrected by the errors for families of
    networks that the model has not seen. The relatives are the networks that the prediction depends
    on most, with their results.
    """
    from archive.agents.prediction.predicting import predict as predict_result

    described = network if is_key(network) else architecture_of(ctx, network, inputs)
    with open_archive(ctx) as archive:
        document = predict_result(
            archive,
            described,
            task,
            protocol,
            metric=metric,
            relatives=k,
            notify=print_message,
        )

    if as_json:
        print_json(document)
        return

    percent = f"{100 * document.probability:.0f} %"
    predicted = f"{document.value:.4g}  ({percent} {document.low:.4g} to {document.high:.4g})"
    print_line((predicted, "bold"))
    basis = f"{counted(document.results, 'result')} of {counted(document.networks, 'network')}"
    print_line(f"from {basis}, {document.of_protocol} under this protocol")
    validation = document.validation
    print_line(
        f"families left out, {validation.families} in turn: "
        f"rank correlation {show(validation.rank_correlation)}, "
        f"median error {validation.median_error:.3g}, "
        f"the interval holds in {100 * validation.coverage:.0f} %"
    )
    if document.relatives:
        rows = []
        for relative in document.relatives:
            name = relative.model or relative.architecture
            rows.append((name, relative.protocol, relative.value, round(relative.similarity, 3)))

        print_table(("relative", "protocol", "value", "similarity"), rows)
