"""On one batch, each objective's loss is that of the reference's pretraining class."""

import pytest
import torch
import transformers
from objectives.asking import MASK, SPECIALS, VOCABULARY, ask, count_ordinary, labels_of, make_rows, padded, run
from oracle import load_saved, make_reference, pad

from bertsmith.objectives.combining import Sum
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.replaced import ReplacedTokens

CLOSE = 1e-5
PAIRS = torch.tensor([0, 1, 1, 0, 1])


def near(value):
    return pytest.approx(value.item(), rel=CLOSE)


@pytest.mark.parametrize("family, kind, label, chunk", [
    ("bert", "next", "next_sentence_label", 10**6), ("bert", "next", "next_sentence_label", 3),
    ("albert", "order", "sentence_order_label", 10**6),
])  # fmt: skip
def test_masked_tokens_and_pairs(family, kind, label, chunk, tmp_path):
    reference = make_reference(family, "pretraining")
    network = load_saved(reference, tmp_path).network
    objective = Sum(MaskedTokens(VOCABULARY, chunk=chunk), SentencePair(kind))
    asked = ask(objective, make_rows(), given={"pairs": PAIRS}, two=True)
    assert (asked.batch.ids == MASK).sum() > 3
    labels = labels_of(asked.batch, asked.given["at"], asked.given["gold"])
    theirs = reference(**padded(asked.batch), labels=labels, **{label: PAIRS})
    means, total = run(objective, network, asked)
    assert total.item() == near(theirs.loss)
    pair = theirs.sop_logits if family == "albert" else theirs.seq_relationship_logits
    assert means[objective.names[1]].item() == near(torch.nn.functional.cross_entropy(pair, PAIRS))
    theirs.loss.backward()
    total.backward()
    ours, wanted = network.embed.tokens.weight.grad, reference.get_input_embeddings().weight.grad
    assert (ours - wanted).abs().max() < 1e-4 * wanted.abs().max()


@pytest.mark.parametrize("family", ["electra", "electra-wide"])
def test_replaced_tokens(family, tmp_path):
    """The generator's loss is ElectraForMaskedLM's, the other ElectraForPreTraining's, which counts every token."""
    large, small = make_reference(family, "pretraining"), make_reference(family, "mask", 1)
    network = load_saved(large, tmp_path / "large").network
    generator = load_saved(small, tmp_path / "small").network
    objective = ReplacedTokens(MaskedTokens(VOCABULARY, rate=0.3, masked=0.85, random=0.0), generator)
    rows = [[id for id in row if id not in SPECIALS] for row in make_rows()]  # else ours counts fewer
    asked = ask(objective, rows)
    means, total = run(objective, network, asked)
    replaced = asked.given["replaced"]
    assert 5 < replaced.sum() < len(replaced) / 2
    labels = pad(list(asked.batch.split(replaced.long())), 0, "right")
    theirs = large(**padded(asked.batch), labels=labels).loss
    assert means["replaced"].item() == near(theirs)
    read = ask(objective.masking, rows).batch  # the same seed: what the generator was given
    labels = labels_of(read, asked.given["at"], asked.given["gold"])
    filled = small(**padded(read), labels=labels).loss
    assert means["generator"].item() == near(filled)
    assert total.item() == near(filled + 50 * theirs)


def test_of_rows_with_special_tokens_only_the_others_are_judged(tmp_path):
    large = make_reference("electra", "pretraining")
    network = load_saved(large, tmp_path / "large").network
    generator = load_saved(make_reference("electra", "mask", 1), tmp_path / "small").network
    objective = ReplacedTokens(MaskedTokens(VOCABULARY, rate=0.3), generator)
    rows = make_rows()
    asked = ask(objective, rows)
    given = padded(asked.batch)
    scores = large(**given).logits[given["attention_mask"].bool()]
    ordinary = ~torch.isin(torch.tensor([id for row in rows for id in row]), torch.tensor(SPECIALS))
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        scores[ordinary], asked.given["replaced"][ordinary].float()
    )
    assert run(objective, network, asked)[0]["replaced"].item() == near(wanted)


@pytest.mark.parametrize("chunk, bare", [(10**6, False), (7, False), (10**6, True)])
def test_next_token(chunk, bare, tmp_path):
    """BertLMHeadModel as a decoder shifts the labels itself; special tokens are asked for by nobody.

    In rows that begin without one the first token is not asked for either.
    """
    masked = make_reference("bert", "mask")
    network = load_saved(masked, tmp_path).network
    settings = transformers.BertConfig(**{**masked.config.to_dict(), "is_decoder": True})
    reference = transformers.BertLMHeadModel(settings).eval()
    reference.load_state_dict(masked.state_dict())
    objective = NextToken(VOCABULARY, chunk=chunk)
    rows = [row[1:] if bare else row for row in make_rows()]
    asked = ask(objective, rows)
    given = padded(asked.batch)
    labels = given["input_ids"].masked_fill(torch.isin(given["input_ids"], torch.tensor(SPECIALS)), -100)
    theirs = reference(**given, labels=labels).loss
    means, _ = run(objective, network, asked)
    assert means["next_token"].item() == near(theirs)
    with torch.no_grad():  # without gradients attention goes another way
        assert run(objective, network, asked)[1].item() == near(theirs)
    _, count = objective.losses(network, network(asked.batch), asked.batch, asked.given)["next_token"]
    expected = objective.expect(count_ordinary(rows), len(rows), 0.0)["next_token"]
    assert count.item() == expected - (len(rows) if bare else 0)


def test_measures_are_those_of_the_reference(tmp_path):
    reference = make_reference("bert", "pretraining")
    network = load_saved(reference, tmp_path).network
    objective = Sum(MaskedTokens(VOCABULARY, rate=0.5, chunk=11), SentencePair("next"))
    asked = ask(objective, make_rows(), given={"pairs": torch.tensor([0, 1, -100, 0, 1])}, two=True)
    # What the network itself finds best is right, but for every third place.
    given = padded(asked.batch)
    best = reference(**given).prediction_logits[given["attention_mask"].bool()].argmax(-1)[asked.given["at"]]
    gold = torch.where(torch.arange(len(best)) % 3 == 0, (best + 1) % 97, best)
    found = objective.measures(network, network(asked.batch), asked.batch, {**asked.given, "gold": gold})
    right, count = found["masked_accuracy"]
    assert (right.item(), count.item()) == (len(best) - len(range(0, len(best), 3)), len(best))
    said = reference(**given).seq_relationship_logits.argmax(-1)
    right, count = found["next_sentence_accuracy"]
    assert count.item() == 4 and right.item() == (said == asked.given["pairs"]).sum().item()
