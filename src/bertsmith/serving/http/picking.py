"""Which model answers a request, and that the request has something in it to answer.

In: what a body holds. Out: a `Card`, or a `Refusal` that says what to do.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from fastapi import Request

from bertsmith.serving.asks import Card, Refusal
from bertsmith.serving.http.complaints import EmptyInput


def list_cards(request: Request) -> list[Card]:
    """Of what is served, the default first; at least one."""
    cards: list[Card] = request.app.state.backend.cards()
    if not cards:
        raise Refusal("unavailable", "no model is served yet; ask again later.", 1.0)
    return cards


def pick_model(request: Request, job: str, name: str | None = None) -> Card:
    """The model of that name; where no such one is served, the default, or the only one that can do the job.

    Clients must often send some name, such as that of a model elsewhere, so an unknown one is no mistake.
    """
    cards = list_cards(request)
    named = next((card for card in cards if card.id == name), None)
    if named is not None:
        return named  # where it cannot do the job, the backend says who can
    if job in cards[0].jobs:
        return cards[0]
    able = {card.id: card for card in cards if job in card.jobs}
    # An adapter stands on a base that can be asked for it.
    bases = [card for id, card in able.items() if ":" not in id or id.rpartition(":")[0] not in able]
    if len(bases) == 1:
        return bases[0]
    told = f'name one that can as "model": {", ".join(able)}' if able else "none that is served can"
    raise Refusal("job", f"the model {cards[0].id!r} cannot {job}; {told}.")


def refuse_empty(inputs: Any, name: str) -> None:
    """`inputs`: a text, token ids, or a list of them."""
    if len(inputs) == 0:
        raise EmptyInput(f"{name} is empty; give at least one text.")
    if isinstance(inputs, list) and not isinstance(inputs[0], int):
        for number, one in enumerate(inputs):
            if len(one) == 0:
                raise EmptyInput(f"{name}[{number}] is empty; give a text, or leave it out.")


def refuse_many(request: Request, count: int, name: str) -> None:
    """For what is asked in several parts, of which each is within the limit."""
    most = request.app.state.settings.inputs
    if count > most:
        raise Refusal("input", f"{name} holds {count} inputs; at most {most} are taken in a request.")


def take_dimensions(count: int, card: Card) -> int:
    """Here and not in the model, which calls the field by another name."""
    if count > card.width:
        told = f"the vectors of {card.id!r} have {card.width} numbers; give fewer."
        raise Refusal("input", f"dimensions is {count}, but {told}")
    return count


async def do_all(works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """What each gives, in their order; where one fails the others are stopped, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
