"""A trained model learns on in the words of a field: pieces are added, its tables grow, others open what comes out."""

import json

import pytest
import safetensors.torch
import torch
import transformers
from pretraining_made import SMALL, make_corpus, pretrain

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.text import load_tokenizer
from bertsmith.text.extension import cut_new_pieces

FIELD = "cardiomyopathy hepatocytes angiography cardiology of the river bank"
FAMILIES = {"bert": "wordpiece", "roberta": "bytes", "electra": "wordpiece", "albert": "wordpiece"}
SIZES = {key: SMALL[key] for key in ("lengths", "tokens", "pass_tokens")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("domain")
    words = FIELD.split()
    texts = ["\n".join(" ".join(words[i:] + words[:i]) + "." for i in range(n % 5, 7)) for n in range(60)]
    (folder / "field.txt").write_text("\n\n".join(texts) + "\n")
    return folder


@pytest.fixture(scope="module", params=FAMILIES)
def adapted(request, place):
    """The family's model, its tokenizer with ten pieces more, the field's corpus by that, and the model that learned on
    in it at a rate of almost nothing."""
    folder = place / request.param
    corpus = make_corpus(folder / "made", kind=FAMILIES[request.param])
    model = pretrain(corpus, folder / "model", request.param, max_steps=3).folder
    extended = bertsmith.extend_tokenizer(model, place / "field.txt", folder / "tokenizer", add=10)
    bertsmith.build_corpus(place / "field.txt", folder / "tokenizer", folder / "corpus", held_out=0.1, filters=False,
                           duplicates=False, near_duplicates=False)  # fmt: skip
    said = []
    bertsmith.pretrain(
        folder / "corpus", folder / "out", model=model, max_steps=1, rate=1e-12, weight_decay=0.0, optimizer="adamw",
        device="cpu", say=said.append, **SIZES,
    )  # fmt: skip
    return request.param, folder, extended, said


def mean_rows(rows, old, new):
    cuts = cut_new_pieces(old, new)
    return torch.stack([rows[list(parts)].mean(dim=0) for parts in cuts.values()])


def test_new_rows_are_means_of_old_ones_and_old_ones_stay(adapted):
    _, folder, extended, said = adapted
    assert f"{len(extended.added)} new pieces begin as the means of those they were cut into" in said[0]
    before, after = load_checkpoint(folder / "model"), load_checkpoint(folder / "out")
    assert after.config.vocabulary == extended.pieces == before.config.vocabulary + len(extended.added)
    old, new = load_tokenizer(folder / "model"), extended.tokenizer
    for tensor in before.network.names:
        one, other = before.network.tensor(tensor), after.network.tensor(tensor)
        if len(one) == before.config.vocabulary:
            torch.testing.assert_close(other[len(one) :], mean_rows(one, old, new), rtol=0, atol=1e-6)
        torch.testing.assert_close(other[: len(one)], one, rtol=0, atol=1e-6)
    assert any(len(before.network.tensor(tensor)) == before.config.vocabulary for tensor in before.network.names)


def test_others_open_it(adapted):
    name, folder, extended, _ = adapted
    settings = json.loads((folder / "out" / "config.json").read_text())
    assert settings["vocab_size"] == extended.pieces
    kind = getattr(transformers, settings["architectures"][0])
    model, told = kind.from_pretrained(folder / "out", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.get_input_embeddings().weight.shape[0] == extended.pieces
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out")
    text = "cardiomyopathy of the river, and hepatocytes."
    assert tokenizer(text)["input_ids"] == extended.tokenizer.encode(text).ids
    assert max(tokenizer(text)["input_ids"]) >= extended.pieces - len(extended.added)
    if name == "electra":
        generator = transformers.ElectraForMaskedLM.from_pretrained(folder / "out" / "generator")
        assert generator.config.vocab_size == extended.pieces
        known, grown = (safetensors.torch.load_file(folder / part / "generator" / "model.safetensors")
                        for part in ("model", "out"))  # fmt: skip
        same = [key for key in known if known[key].shape == grown[key].shape]
        assert same and all(torch.allclose(known[key], grown[key], atol=1e-6) for key in same)
    else:
        assert bertsmith.load(folder / "out").fill(f"the river {extended.tokenizer.mask_token}").answers


def test_an_untied_head_grows_too(place, tmp_path):
    """Its rows and its bias, as the word table does; spare rows of a published table are used first."""
    corpus = make_corpus(tmp_path / "made")
    tokenizer = load_tokenizer(corpus / "tokenizer")
    config = transformers.BertConfig(
        vocab_size=tokenizer.size + 2, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        tie_word_embeddings=False,
    )  # fmt: skip
    theirs = transformers.BertForMaskedLM(config)
    with torch.no_grad():
        theirs.cls.predictions.decoder.bias.normal_()
    theirs.save_pretrained(tmp_path / "model")
    tokenizer.save(tmp_path / "model")
    field = place / "field.txt"
    extended = bertsmith.extend_tokenizer(tmp_path / "model", field, tmp_path / "more", add=9, min_count=1)
    assert len(extended.added) > 2
    bertsmith.build_corpus(place / "field.txt", tmp_path / "more", tmp_path / "corpus", filters=False, duplicates=False,
                           near_duplicates=False)  # fmt: skip
    bertsmith.pretrain(tmp_path / "corpus", tmp_path / "out", model=tmp_path / "model", asks="masked", max_steps=1,
                       rate=1e-12, weight_decay=0.0, device="cpu", **SIZES)  # fmt: skip
    grown = transformers.BertForMaskedLM.from_pretrained(tmp_path / "out")
    assert grown.config.vocab_size == extended.pieces == tokenizer.size + len(extended.added)
    pairs = [
        (theirs.bert.embeddings.word_embeddings.weight, grown.bert.embeddings.word_embeddings.weight),
        (theirs.cls.predictions.decoder.weight, grown.cls.predictions.decoder.weight),
        (theirs.cls.predictions.decoder.bias, grown.cls.predictions.decoder.bias),
    ]
    for before, after in pairs:
        wanted = mean_rows(before.detach(), tokenizer, extended.tokenizer)
        torch.testing.assert_close(after[tokenizer.size :].detach(), wanted, rtol=0, atol=1e-6)
        assert torch.allclose(after[: tokenizer.size], before[: tokenizer.size], rtol=0, atol=1e-6)


def test_a_tokenizer_that_is_no_extension_is_refused(place, tmp_path):
    corpus = make_corpus(tmp_path / "made")
    model = pretrain(corpus, tmp_path / "model", max_steps=1).folder
    bertsmith.train_tokenizer(place / "field.txt", tmp_path / "other", size=60)
    bertsmith.build_corpus(place / "field.txt", tmp_path / "other", tmp_path / "corpus", filters=False)
    with pytest.raises(BertsmithError, match=r"another tokenizer than that of .*, which it does not extend either: "):
        bertsmith.pretrain(tmp_path / "corpus", tmp_path / "out", model=model, device="cpu", **SIZES)
    assert not (tmp_path / "out").exists()
