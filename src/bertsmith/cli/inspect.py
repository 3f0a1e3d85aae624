"""`bertsmith inspect …`: pictures of what happens inside a model, a sub-verb each, in a file of its own."""

import typer

from bertsmith.cli.flags import PanelCommand
from bertsmith.cli.inspect_attention import attention
from bertsmith.cli.inspect_attribution import attribution
from bertsmith.cli.inspect_heads import heads
from bertsmith.cli.inspect_input import input
from bertsmith.cli.inspect_lens import lens
from bertsmith.cli.inspect_positions import positions
from bertsmith.cli.inspect_probe import probe
from bertsmith.cli.inspect_senses import senses
from bertsmith.cli.inspect_step import step
from bertsmith.cli.options import spread

inspect = typer.Typer(
    name="inspect", no_args_is_help=True, rich_markup_mode=None, help="Look inside a model; each picture is one file."
)

inspect.command(cls=PanelCommand)(spread(input))
inspect.command(cls=PanelCommand)(spread(positions))
inspect.command(cls=PanelCommand)(spread(step))
inspect.command(cls=PanelCommand)(spread(attention))
inspect.command(cls=PanelCommand)(spread(senses))
inspect.command(cls=PanelCommand)(spread(lens))
inspect.command(cls=PanelCommand)(spread(attribution))
inspect.command(cls=PanelCommand)(spread(heads))
inspect.command(cls=PanelCommand)(spread(probe))
