"""The page that `bertsmith serve` shows as it is: the model in the package, each job done by the right adapter."""

import pytest
from serving.page_served import meet
from serving.served import serving

import bertsmith
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents

ALIKE = ("A man is playing a guitar.", "Someone plays an instrument.")


@pytest.fixture(scope="module")
def model():
    return bertsmith.load(device="cpu")


@pytest.fixture(scope="module")
def address(model):
    backend = Local(Residents({"house": model}))
    with serving(backend) as found:
        yield found
    backend.close()


@pytest.fixture
def person(open_page, address):
    return meet(open_page(address))


def test_each_job_asks_who_answers_it(person, model):
    """What needs no head asks the base, which knows its own default; what needs one asks the adapter that has it."""
    person.expect(person.page.locator("#serves")).to_have_text("serves house with 7 adapters")
    person.open("Classify")
    person.expect(person.box("Model")).to_have_value("house:sentiment")
    for tab in ("Search", "Senses", "Attention", "Tokens"):
        person.open(tab)
        person.expect(person.box("Model")).to_have_value("house")
    person.open("Pair")
    person.expect(person.box("Model")).to_have_value("house")
    person.box("First text").fill(ALIKE[0])
    person.box("Second text").fill(ALIKE[1])
    person.sees(".figure", [f"{model.similar(*ALIKE)[0]['score']:.3f}"])
    person.way("Entails")
    person.expect(person.box("Model")).to_have_value("house:nli")
    person.way("Score")
    person.expect(person.box("Model")).to_have_value("house:similarity")
    for tab, adapter in {"Tag": "house:names", "Answer": "house:answers"}.items():
        person.open(tab)
        person.expect(person.box("Model")).to_have_value(adapter)


def test_fill_and_its_layers(person, model):
    text = "Birds build their [MASK] in trees."
    person.open("Fill")
    person.box("Text").fill(text)
    person.sees(".score-label", [one["token_str"] for one in model.fill(text)])
    person.panel.get_by_role("button", name="Layer by layer").click()
    person.expect(person.panel).to_contain_text("layer 8")


def test_a_base_with_two_adapters_for_one_job_is_not_asked_for_it(open_page, heads, adapters):
    """It could not know which of them is meant."""
    two = {name: adapters[name] for name in ("liked", "better")}
    backend = Local(Residents({"base": bertsmith.load(heads["bare"], device="cpu", adapters=two)}))
    with serving(backend) as address:
        person = meet(open_page(address))
        person.open("Classify")
        person.expect(person.box("Model")).to_have_value("base:liked")
        person.open("Tokens")
        person.expect(person.box("Model")).to_have_value("base")
        open_page.close()
    backend.close()
