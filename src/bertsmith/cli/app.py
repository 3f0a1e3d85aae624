"""The list of the verbs. Reading it imports neither torch nor numpy, so that `bertsmith --help` answers at once."""

from typing import Annotated

import typer

from bertsmith.cli.answer import answer
from bertsmith.cli.check import check
from bertsmith.cli.choose import choose
from bertsmith.cli.classify import classify
from bertsmith.cli.corpus import corpus
from bertsmith.cli.embed import embed
from bertsmith.cli.evaluate import evaluate
from bertsmith.cli.export import export
from bertsmith.cli.fill import fill
from bertsmith.cli.finetune import finetune
from bertsmith.cli.flags import PanelCommand
from bertsmith.cli.follows import follows
from bertsmith.cli.info import info
from bertsmith.cli.inspect import inspect
from bertsmith.cli.models import models
from bertsmith.cli.options import spread
from bertsmith.cli.pretrain import pretrain
from bertsmith.cli.rerank import rerank
from bertsmith.cli.score import score
from bertsmith.cli.search import search
from bertsmith.cli.serve import serve
from bertsmith.cli.similar import similar
from bertsmith.cli.sweep import sweep
from bertsmith.cli.tag import tag
from bertsmith.cli.tokenize import tokenize
from bertsmith.cli.tokenizer import tokenizer

# Plain help and plain tracebacks: rich ones cost more time than all the rest of `--help`.
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def show_version(wanted: bool) -> None:
    """Prints the version and ends the command."""
    if wanted:
        from bertsmith import __version__

        print(f"bertsmith {__version__}")
        raise typer.Exit


@app.callback()
def bertsmith(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Forge your own BERT: train a model of the BERT family on your own data and ask it, on this machine, offline.

    \b
    Examples:
      bertsmith check reviews.csv
      bertsmith finetune --train reviews.csv --out my-classifier
      bertsmith classify "A wonderful film."
      bertsmith embed "a river bank" "a savings bank"
      bertsmith fill --help

    A verb prints a table on a terminal and one JSON line an input in a pipe.
    """


# In the order in which a person meets them.
VERBS = (
    *(pretrain, check, finetune, sweep, evaluate, classify, score, tag, answer, choose, fill, follows, embed),
    *(similar, search, rerank, tokenize, info, models, export, serve),
)
for verb in VERBS:
    app.command(cls=PanelCommand)(spread(verb))
app.add_typer(corpus)
app.add_typer(tokenizer)
app.add_typer(inspect)
