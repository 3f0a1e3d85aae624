"""Masked words of plain text and its perplexity: against the reference's model, by frequency, samples, refusals."""

import json
import math
import unicodedata

import pytest
import tokenizers
import torch
import transformers
from evaluation.unlabelled_text import DOCUMENTS
from hypothesis import given
from hypothesis import strategies as st
from tasks.made import SENTENCES, bytelevel_files, open_both, sentencepiece_files
from tokenizers import Tokenizer as Engine

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.function_words import FUNCTION_WORDS, is_content
from bertsmith.evaluation.masked_accuracy import count_words, cut_units, draw, own_pieces, rank_words
from bertsmith.evaluation.unlabelled_tables import masked_notes, masked_rows
from bertsmith.tasks.hiding import HiddenText
from bertsmith.text.templates import read_template
from bertsmith.text.tokenizer import Tokenizer


def test_words_are_cut_as_people_write_them():
    units = [(unit.text, unit.is_word) for unit in cut_units("Don’t_go, it's 3,141.5: well-known x2!")]
    words = [text for text, is_word in units if is_word]
    assert words == ["Don’t", "go", "it's", "3,141.5", "well", "known", "x2"]
    assert [text for text, is_word in units if not is_word] == ["_", ",", ":", "-", "!"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東富山站是鐵路車站。", list("東富山站是鐵路車站")),  # a clause is not a word
        ("カタカナとABC12", [*"カタカナと", "ABC12"]),
        ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),  # nor is each letter of Hindi
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("اَلْعَرَبِيَّةُ می\u200cخواهم", ["اَلْعَرَبِيَّةُ", "می\u200cخواهم"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("한국어는 쉽다", ["한국어는", "쉽다"]),
    ],
)
def test_words_of_other_scripts(text, words):
    assert [unit.text for unit in cut_units(text) if unit.is_word] == words


@given(st.text(alphabet="ab C'’.,1 \n-!é漢字_हि\u0301", max_size=60))
def test_every_piece_belongs_to_one_unit(model, text):
    units = cut_units(text)
    assert "".join(unit.text for unit in units) == "".join(text.split())
    if units:
        read = HiddenText(model.tokenizer.encode(text), model.tokenizer, 500)
        owned = own_pieces(read, units)
        assert sorted(piece for pieces in owned for piece in pieces) == list(range(read.count))
        for unit, pieces in zip(units, owned, strict=True):
            for piece in pieces:
                assert unit.start <= read.offsets[piece][0] < unit.start + len(unit.text)


@pytest.mark.parametrize(("family", "files"), [("roberta", bytelevel_files), ("albert", sentencepiece_files)])
def test_words_own_their_pieces_in_other_vocabularies(tmp_path, family, files):
    """Also the mark of the space before a word; the pieces of a word spell it."""
    tokenizer = open_both(tmp_path, family, "mask", files()).ours.tokenizer
    seen: set[str] = set()
    for text in [*SENTENCES, "  walked\n(slowly)  It's  ..."]:
        units, read = cut_units(text), HiddenText(tokenizer.encode(text), tokenizer, 500)
        owned = own_pieces(read, units)
        assert sorted(piece for pieces in owned for piece in pieces) == list(range(read.count))
        owner = {piece: number for number, some in enumerate(owned) for piece in some}
        spaces = [i for i, (a, b) in enumerate(read.offsets) if a == b and read.words[i] == read.words[i + 1]]
        assert all(owner[i] == owner[i + 1] for i in spaces)
        seen |= {tokenizer.piece(read.id(i)) for i in spaces}
        for unit, pieces in zip(units, owned, strict=True):
            ids = [read.id(piece) for piece in pieces]
            if unit.is_word and tokenizer.unk_id not in ids:
                assert fold(tokenizer.decode(ids)) == fold(unit.text)
    assert seen == {"▁" if family == "albert" else "Ġ"}


def test_the_space_before_a_word_is_hidden_with_it():
    """Where the mark of the space is a piece of its own and has the place of the space, which is not the word's."""
    letters = [(letter, -3.0) for letter in "abcdefghijklmnopqrstuvwxyz"]
    engine = Engine(tokenizers.models.Unigram([("<unk>", -9.0), ("▁", -2.0), ("▁the", -2.0), *letters], 0))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer = Tokenizer(engine, read_template(engine), {"unk": "<unk>"})
    text = "the kite the  x"
    read = HiddenText(tokenizer.encode(text), tokenizer, 64)
    owned = own_pieces(read, cut_units(text))
    spelled = [[tokenizer.piece(read.id(piece)) for piece in pieces] for pieces in owned]
    assert spelled == [["▁the"], ["▁", *"kite"], ["▁the", "▁"], ["▁", "x"]]


def fold(word: str) -> str:
    """Without case, accents and spaces, which some vocabularies drop."""
    plain = unicodedata.normalize("NFKD", word.lower())
    return "".join(one for one in plain if not unicodedata.combining(one) and not one.isspace())


def guess_by_loop(folder, documents) -> dict[str, list[bool]]:
    """Each word masked whole in its document, by the reference; words by their offsets."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reference = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    found: dict[str, list[bool]] = {}
    for text in documents:
        read = tokenizer(text, return_offsets_mapping=True)
        for unit in cut_units(text):
            inside = [i for i, (a, b) in enumerate(read["offset_mapping"])
                      if b > a and unit.start <= a < unit.start + len(unit.text)]  # fmt: skip
            ids = torch.tensor(read["input_ids"])
            masked = ids.clone()
            masked[inside] = tokenizer.mask_token_id
            with torch.no_grad():
                best = reference(masked[None]).logits[0, inside].argmax(dim=-1)
            if unit.is_word:
                found.setdefault(unit.text, []).append(best.equal(ids[inside]))
    return found


def sharpen(folder, target, *liked):
    """The same tokenizer, and a model that likes some pieces everywhere, the first most."""
    reference = transformers.BertForMaskedLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        for number, piece in enumerate(liked):
            reference.cls.predictions.bias[tokenizer.convert_tokens_to_ids(piece)] += 9.0 - 0.1 * number
    reference.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


@pytest.mark.parametrize(("liked", "text"), [("##s", "rivers"), ("[UNK]", "漢"), ("[UNK]", "the 漢")])
def test_a_word_is_guessed_whole_and_as_a_word(folder, tmp_path, liked, text):
    """Neither one right piece of two nor "unknown" is the word."""
    path = tmp_path / "text.txt"
    path.write_text(text)
    model = bertsmith.load(sharpen(folder, tmp_path / "sharp", liked), device="cpu")
    assert bertsmith.evaluate_masked(path, model)["accuracy"]["all"]["value"] == 0.0
    path.write_text("the")
    model = bertsmith.load(sharpen(folder, tmp_path / "right", "the"), device="cpu")
    assert bertsmith.evaluate_masked(path, model)["accuracy"]["all"]["value"] == 1.0


def test_the_guesses_are_those_of_a_loop_over_the_reference(folder, file, tmp_path):
    sharp = sharpen(folder, tmp_path / "sharp", "the", "sees", "town")
    right = guess_by_loop(sharp, DOCUMENTS)
    found = bertsmith.evaluate_masked(file, bertsmith.load(sharp, device="cpu"))
    every = [one for some in right.values() for one in some]
    assert 0 < sum(every) < len(every)
    assert found["words"] == found["samples"] == len(every) and found["is_whole"] and found["documents"] == 3
    accuracy = found["accuracy"]
    assert accuracy["all"]["value"] == pytest.approx(sum(every) / len(every)) and accuracy["all"]["n"] == len(every)
    content = [one for word, some in right.items() if is_content(word) for one in some]
    assert accuracy["content"]["n"] == len(content)
    assert accuracy["content"]["value"] == pytest.approx(sum(content) / len(content))
    assert accuracy["function"]["n"] == len(every) - len(content)
    for one in [*accuracy.values(), *found["bands"]]:
        assert one["low"] <= one["value"] <= one["high"]
    json.dumps(found, allow_nan=False)
    assert len(masked_rows(found)) == 3 + len(found["bands"]) + 2 and masked_notes(found)


def test_the_perplexity_of_a_whole_text_is_that_of_its_documents(model, file):
    results = [bertsmith.pseudo_likelihood(model, document)[0] for document in DOCUMENTS]
    total, tokens = sum(one["score"] for one in results), sum(one["tokens"] for one in results)
    words = sum(unit.is_word for document in DOCUMENTS for unit in cut_units(document))
    found = bertsmith.evaluate_masked(file, model)
    perplexity = found["perplexity"]
    assert perplexity["token"]["n"] == tokens and perplexity["word"]["n"] == words
    assert perplexity["token"]["value"] == pytest.approx(math.exp(-total / tokens), rel=1e-5)
    assert perplexity["word"]["value"] == pytest.approx(math.exp(-total / words), rel=1e-5)
    assert perplexity["token"]["low"] < perplexity["token"]["value"] < perplexity["token"]["high"]
    assert found["units"] == found["unit_samples"] == sum(len(cut_units(document)) for document in DOCUMENTS)


@given(st.integers(1, 60), st.integers(0, 9), st.booleans())
def test_a_sample_is_settled_by_its_seed_and_repeats_nothing(samples, seed, words):
    drawn = draw(DOCUMENTS, samples, seed, words)
    assert drawn == draw(DOCUMENTS, samples, seed, words)
    every = [(number, place) for number, places in drawn for place in places]
    there = sum(unit.is_word or not words for document in DOCUMENTS for unit in cut_units(document))
    assert len(every) == len(set(every)) == min(samples, there)
    assert all(cut_units(DOCUMENTS[number])[place].is_word for number, place in every) or not words


def test_frequencies_come_from_the_text_or_from_another(model, file, tmp_path):
    assert rank_words(count_words(["b a B c a", "b"])) == {"b": 1, "a": 2, "c": 3}
    own = bertsmith.evaluate_masked(file, model)
    assert [(one["from"], one["to"], one["n"]) for one in own["bands"]] == [(1, 100, own["words"])]
    assert own["counts"] is None
    other = tmp_path / "counts.txt"
    other.write_text(
        "\n".join(f"w{number} " * (2 if number else 1) for number in range(100)) + " the town the town the"
    )
    bands = bertsmith.evaluate_masked(file, model, counts=other)["bands"]
    known = sum(word.lower() in ("the", "town") for text in DOCUMENTS for word in text.replace(".", "").split())
    assert [(one["from"], one["n"]) for one in bands] == [(1, known), (None, own["words"] - known)]


def test_a_sample_context_and_way_are_choices(model, file):
    found = bertsmith.evaluate_masked(file, model, samples=7, seed=3, length=12, way="within-word")
    assert found["samples"] == found["unit_samples"] == 7 and not found["is_whole"] and found["length"] == 12
    again = bertsmith.evaluate_masked(file, model, samples=7, seed=3, length=12, way="within-word")
    assert {**again, "seconds": 0} == {**found, "seconds": 0}
    assert "a sample (seed 3)" in " ".join(masked_notes(found))


def test_a_word_that_the_model_cannot_be_asked_for_is_counted(model, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("x" * 80 + " the film [MASK] 漢")
    found = bertsmith.evaluate_masked(path, model)
    # BERT's WordPiece makes one unknown piece of 漢, never guessed; of 80 letters 80 pieces, more than it reads.
    assert found["skipped"] == 2 and found["accuracy"]["all"]["n"] == 3


def test_function_words_are_words_in_small_letters():
    assert all(word == word.lower() and cut_units(word)[0].text == word for word in FUNCTION_WORDS)
    assert not is_content("The") and not is_content("Don’t") and is_content("film")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "holds no word; give a text"),
        ("... !\n", {}, "holds no word"),
        ("fox", {"samples": 0}, "samples is 0"),
        ("fox", {"seed": -1}, "seed is -1"),
        ("fox", {"length": 65}, "reads at most 64"),
        ("fox", {"length": 2}, "special tokens alone fill such a row"),
        ("fox", {"way": "x"}, "way='x' is not a choice"),
        ("fox", {"counts": "gone.txt"}, "gone.txt"),
    ],
)
def test_mistakes(model, tmp_path, content, options, message):
    path = tmp_path / "text.txt"
    path.write_text(content)
    with pytest.raises(BertsmithError, match=message):
        bertsmith.evaluate_masked(path, model, **options)
