"""What pretraining asks of rows of text, and what a mistake costs: the face that every objective shows.

In: rows as a corpus gives them, laid end to end on a device. Out: the batch that the encoder reads (with words hidden,
say) and, from the hidden states, the sum of each loss and how many items it is summed over. Every random draw is by
torch's own generator, which the loop seeds for each pass, so a pass is a function of (seed, step, its number). Shapes
depend on numbers that the host knows (tokens, rows, the share of the run that is done), never on what is in the ids: so
a pass can be compiled and nothing waits for the device.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network


@dataclass(frozen=True)
class Vocabulary:
    """What an objective must know of the ids."""

    size: int
    mask: int
    specials: tuple[int, ...]  # never hidden, never put in another's place
    begins: Tensor | None = None  # (size,) bool: whether the piece begins a word; None: each piece is a word


@dataclass
class Asked:
    """What an objective made of a batch."""

    batch: Batch  # what the encoder reads
    given: Mapping[str, Tensor]  # what `losses` needs beside the hidden states: places, what stood there, …


Outline = tuple[str, *tuple[int, ...]]  # what is asked of a pass, and sizes that follow from it
Summed = dict[str, tuple[Tensor, Tensor]]  # name -> a sum and how many items it is over, both on the device


class Objective:
    """Override `expect`, `ask` and `losses`. `done` is the share of the run that is over, from 0 to 1.

    A pass is `asked = ask(…)`, `hidden = read(network, asked)`, `losses(network, hidden, asked.batch, asked.given)`,
    all three with gradients on when training: one that reads with another network first (a generator) does so in
    `ask`. What is minimised is, over the names, the weight times the sum over all passes divided by the count over all.
    """

    name: ClassVar[str] = ""
    heads: tuple[str, ...] = ()  # of the family (`mask`, `follows`), that the network must have
    needs_pairs: bool = False  # whether rows must hold two segments and `given["pairs"]`
    alters: bool = False  # whether `ask` changes what is read; of those that are summed, one may
    names: tuple[str, ...] = ()  # of its losses

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        """How many items each loss of a pass is over, as far as the host can tell: `tokens` are those no special is.

        A name of `names` that is left out has no loss in such a pass."""
        raise NotImplementedError

    def weights(self, done: float) -> dict[str, float]:
        """What each loss is multiplied by; those that are not named by 1."""
        return {}

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        """Passes of one outline and equally many tokens and rows have the same shapes when they are recorded, that is,
        when `given["asked"]` holds `count_hidden`: then sizes are rounded up. None: lengths of rows must be known."""
        return (self.name,)

    def count_hidden(self, tokens: int, done: float) -> int:
        """How many tokens of a pass are hidden."""
        return 0

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        """`tokens` of the batch are no specials and no filler; `given["pairs"]` (rows,) is 0 where B follows A, 1 where
        it does not, and -100 for a row that is none. In a pass that is recorded `given["asked"]`, one number, is how
        many are hidden this time, and `tokens` and `done` may be another pass's of the same outline."""
        return Asked(batch, given)

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        """Where `losses` and `measures` read the last states, each place once; None: everywhere."""
        return None

    def read(self, network: Network, asked: Asked) -> Tensor:
        """The last hidden states, (tokens, width); 0 at places that nothing is asked of."""
        hidden: Tensor = network(asked.batch.wanting(self.places(network, asked.batch, asked.given)))
        return hidden

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        """`hidden` are the last states, (tokens, width). One that reads with a teacher too does so here."""
        raise NotImplementedError

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        """On held-out rows: what was right, and of how many, by name (`masked_accuracy`, …)."""
        return {}

    def parts(self) -> dict[str, nn.Module]:
        """Networks of its own that learn with the first (a generator), by name; some of their parameters may be the
        first one's own."""
        return {}

    def use_parts(self, parts: Mapping[str, nn.Module]) -> None:
        """Go on with these in the place of its own: the same ones in another precision, say."""
