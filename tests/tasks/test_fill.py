"""Filling masks one by one, against the reference's pipeline; and the sequence that shows an answer in its text."""

import pytest
import transformers
from tasks.made import CLOSE

TEXTS = [
    "Paris is the {} of France.",
    "{} is the capital",
    "the lazy dog {}",
    "{}",
    "Is  it {}?\n(not {}), he walked",
    "{}{} {}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_same_answers_as_the_pipeline(filler, text):
    text = text.replace("{}", filler.mask)
    pipeline = transformers.pipeline("fill-mask", model=filler.reference, tokenizer=filler.tokenizer, device="cpu")
    ours, theirs = filler.ours.fill(text, top_k=7), pipeline(text, top_k=7)
    if text.count(filler.mask) == 1:
        ours, theirs = [ours], [theirs]
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert [a["token"] for a in mine] == [a["token"] for a in other]
        assert [a["token_str"] for a in mine] == [a["token_str"] for a in other]
        assert [a["score"] for a in mine] == pytest.approx([a["score"] for a in other], abs=CLOSE)


def sequence_with(model, text: str, piece: str, mask: int = 0) -> str:
    """The sequence of the answer that is this piece of the vocabulary."""
    result = model.fill(text, top_k=model.tokenizer.size)
    answers = result[mask] if isinstance(result[0], list) else result
    return next(a["sequence"] for a in answers if a["token"] == model.tokenizer.id(piece))


@pytest.mark.parametrize(
    ("text", "piece", "filled"),
    [
        ("PARIS is  the [MASK] of\tFrance .", "city", "PARIS is  the city of\tFrance ."),
        ("[MASK] is Good", "paris", "paris is Good"),
        ("The Dog [MASK]", "play", "The Dog play"),
        ("We Play [MASK] it", "##ing", "We Playing it"),
        ("[MASK] it", "##ing", "ing it"),
        ("It is good [MASK]", "!", "It is good!"),
        ("It is good[MASK]", "!", "It is good!"),
        ("It ([MASK]) is", "paris", "It (paris) is"),
        ("It-[MASK] is", "paris", "It-paris is"),
        ("He\n[MASK] is", "paris", "He\nparis is"),
        ("Café ist [MASK].", "good", "Café ist good."),
        ("A [MASK] is", "[SEP]", "A [SEP] is"),
    ],
)
def test_sequence_of_wordpiece(bert, text, piece, filled):
    assert sequence_with(bert.ours, text, piece) == filled


@pytest.mark.parametrize(
    ("text", "piece", "filled"),
    [
        ("This  IS <mask>.", "ĠFrance", "This  IS France."),
        ("This  IS <mask>.", "Paris", "This  ISParis."),
        ("This IS<mask>.", "ĠFrance", "This IS France."),
        ("<mask> is", "ĠFrance", "France is"),
        ("<mask> is", "Paris", "Paris is"),
        ("It is <mask>", ".", "It is."),
        ("It is\n<mask>", "ĠFrance", "It is\nFrance"),
        ("It is (<mask>)", "Paris", "It is (Paris)"),
        ("It is <mask>", "##", "It is##"),
        ("It <mask> is", "Ċ", "It\n is"),
    ],
)
def test_sequence_of_bytes(roberta, text, piece, filled):
    assert sequence_with(roberta.ours, text, piece) == filled


@pytest.mark.parametrize(
    ("text", "piece", "filled"),
    [
        ("It  IS [MASK].", "▁the", "It  IS the."),
        ("It IS[MASK].", "▁the", "It IS the."),
        ("[MASK] is", "▁the", "the is"),
        ("We play [MASK]", "s", "We plays"),
    ],
)
def test_sequence_of_sentencepiece(albert, text, piece, filled):
    assert sequence_with(albert.ours, text, piece) == filled


def test_other_masks_stay_masked(bert):
    text = "[MASK] play [MASK], it [MASK]."
    assert sequence_with(bert.ours, text, "we", mask=0) == "we play [MASK], it [MASK]."
    assert sequence_with(bert.ours, text, "##ing", mask=1) == "[MASK] playing, it [MASK]."
    assert sequence_with(bert.ours, text, "is", mask=2) == "[MASK] play [MASK], it is."


def test_more_answers_than_pieces(bert):
    assert len(bert.ours.fill("it is [MASK]", top_k=10_000)) == len(bert.tokenizer)


def test_a_list_gives_a_list(bert):
    texts = ["it is [MASK]", "[MASK] is [MASK]"]
    together = bert.ours.fill(texts)
    assert [r.as_dict().keys() for r in together] == [bert.ours.fill(t).as_dict().keys() for t in texts]
    assert bert.ours.fill([]) == []
