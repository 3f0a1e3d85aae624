"""Words of several senses in sentences of our own, for a first look: `EXAMPLES[name]` is the word and its sentences."""

from collections.abc import Mapping, Sequence

_APPLE = {
    "fruit": (
        "She peeled the apple and cut it into slices.",
        "An apple fell from the tree into the grass.",
        "He baked the apple with cinnamon and sugar.",
        "The apple was sweet, crisp and very juicy.",
        "Grate one apple into the dough before baking.",
        "A worm had eaten its way through the apple.",
    ),
    "firm": (
        "Apple presented a new phone at its yearly event.",
        "Shares of Apple rose after the quarterly report.",
        "The engineers left Apple to found a software company.",
        "Apple sued the company over its patents.",
        "Developers complain about the fees that Apple charges.",
        "In 1997 Apple was close to bankruptcy.",
    ),
}
_BANK = {
    "money": (
        "She paid the cheque into her account at the bank.",
        "The bank raised its interest rates again.",
        "He asked the bank for a loan to buy a house.",
        "The bank refused to give them any more credit.",
        "Her savings were lost when the bank failed.",
        "The robbers left the bank with the cash in two bags.",
    ),
    "river": (
        "We sat on the bank of the river and fished.",
        "Willows grew along the muddy bank of the stream.",
        "The boat drifted towards the other bank of the river.",
        "After the flood the water stood above the bank.",
        "The children ran down the grassy bank to the water.",
        "An otter slipped from the bank into the lake.",
    ),
    "store": (
        "The hospital asked donors to come to the blood bank.",
        "The blood bank is short of donors this summer.",
        "Seeds of rare plants are kept in a seed bank.",
        "The food bank hands out meals to poor families.",
        "Volunteers sort tins and bread at the food bank.",
        "The clinic keeps frozen cells in a tissue bank.",
    ),
}
_MOUSE = {
    "animal": (
        "The cat caught a mouse in the kitchen.",
        "A mouse had gnawed a hole in the sack of grain.",
        "The owl swooped down on a mouse in the field.",
        "A grey mouse ran under the cupboard.",
    ),
    "device": (
        "Click the left button of the mouse to open the menu.",
        "My new mouse needs no cable and no pad.",
        "Move the mouse until the pointer is over the icon.",
        "He plugged the mouse and the keyboard into his computer.",
    ),
}


def _label(senses: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    return [{"label": label, "text": text} for label, texts in senses.items() for text in texts]


EXAMPLES = {"apple": _label(_APPLE), "bank": _label(_BANK), "mouse": _label(_MOUSE)}
