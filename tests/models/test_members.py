"""Several heads on one encoder, of every family: written as an encoder with adapters, opened to the same numbers."""

import json

import pytest
import torch
import transformers
from oracle import FAMILIES, make_reference

from bertsmith.data.batch import Batch
from bertsmith.layers.mixing import FeatureShape
from bertsmith.models.adapters import read_members
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.fitting import fit_head
from bertsmith.models.members import Wanted, fit_members, open_members, write_members

WANTED = {
    "mood": Wanted("classify", ["yes", "no"]),
    "topic": Wanted("classify", ["a", "b", "c"]),
    "slots": Wanted("tag", ["O", "B-x", "I-x"]),
    "words": Wanted("mask"),
    "best": Wanted("choose", ["choice"]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_members_of_every_family_come_back(tmp_path, family):
    make_reference(family, "", 0).save_pretrained(tmp_path / "base")
    fitted, heads = fit_members(load_checkpoint(tmp_path / "base"), WANTED, seed=3, dropout=0.0)
    assert list(fitted.heads) == list(fitted.network.heads) == list(WANTED) == list(heads.anew)
    write_members(fitted, tmp_path / "out")
    again = open_members(tmp_path / "out", list(WANTED))
    theirs = dict(fitted.network.named_parameters())
    assert all(torch.equal(parameter, theirs[name]) for name, parameter in again.network.named_parameters())
    assert not torch.equal(theirs["heads.mood.out.weight"][:2], theirs["heads.topic.out.weight"][:2])
    _, loading = transformers.AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not loading["unexpected_keys"] and not [key for key in loading["missing_keys"] if "pooler" not in key]
    batch = Batch.of([[5, 6, 7, 8], [9, 10, 11]])
    members = read_members(tmp_path / "out", load_checkpoint(tmp_path / "out"))
    whole = fitted.network.eval().double()
    with torch.no_grad():
        for name, wanted in WANTED.items():
            # How a product of matrices is rounded depends on where in memory they lie, so that the last bit differed
            # now and then. In double precision nothing is left of that, and all of a wrong weight.
            network = members[name].network.double()
            alone = network.score(network(batch), batch, wanted.kind)
            shared = whole.score(whole(batch), batch, name)
            assert alone.dtype == torch.float64 and torch.allclose(alone, shared, rtol=0, atol=1e-12), name


def test_a_classifier_with_these_labels_goes_on_in_each_member_that_fits(tmp_path):
    reference = make_reference("bert", "classify", 0, num_labels=2, id2label={0: "yes", 1: "no"})
    reference.save_pretrained(tmp_path / "base")
    fitted, heads = fit_members(load_checkpoint(tmp_path / "base"), WANTED)
    assert heads.tell() == (
        "Heads kept: mood; begun anew: topic (other labels before: yes, no), slots, words, best."
    )  # fmt: skip
    assert torch.equal(fitted.network.get_parameter("heads.mood.out.weight"), reference.classifier.weight)
    pooler = reference.bert.pooler.dense.weight
    assert all(torch.equal(fitted.network.get_parameter(f"heads.{n}.dense.weight"), pooler) for n in ("topic", "best"))
    parts = {fitted.network.get_parameter(f"heads.{n}.dense.weight").data_ptr() for n in ("mood", "topic", "best")}
    assert len(parts) == 3  # each learns its own


def test_heads_of_members_go_on_by_their_names(tmp_path):
    """Kept whole, for the labels that are known, or begun anew; what none asks for is named."""
    make_reference("bert", "", 0).save_pretrained(tmp_path / "base")
    first, _ = fit_members(load_checkpoint(tmp_path / "base"), WANTED, seed=3)
    write_members(first, tmp_path / "out")
    for name, wanted in WANTED.items():
        labels = {"task": "any", "settings": {"labels": list(wanted.labels)}}
        (tmp_path / "out" / "adapters" / name / "bertsmith.json").write_text(json.dumps(labels))
    base = load_checkpoint(tmp_path / "out")
    asked = {
        "words": Wanted("mask"), "mood": Wanted("classify", ["no", "perhaps", "yes"]), "slots": WANTED["slots"],
        "topic": Wanted("classify", ["x", "y"]), "best": Wanted("tag", ["O", "B-x"]), "other": WANTED["mood"],
    }  # fmt: skip
    again, heads = fit_members(base, asked, read_members(tmp_path / "out", base), seed=9)
    assert heads.tell() == (
        "Heads kept: words, slots; kept for some labels: mood (no, yes); "
        "begun anew: topic (other labels before: a, b, c), best, other."
    )
    old, new = dict(first.network.named_parameters()), dict(again.network.named_parameters())
    for name in ("words", "slots"):
        mine = [key for key in new if key.startswith(f"heads.{name}.")]
        assert mine and all(torch.equal(new[key], old[key]) for key in mine)
    assert torch.equal(new["heads.mood.out.weight"][[2, 0]], old["heads.mood.out.weight"])  # yes, no
    assert torch.equal(new["heads.mood.dense.weight"], old["heads.mood.dense.weight"])
    assert not torch.equal(new["heads.other.out.weight"], old["heads.mood.out.weight"])
    _, heads = fit_members(base, {"slots": WANTED["slots"]}, read_members(tmp_path / "out", base))
    assert heads.tell() == "Heads kept: slots; left out: best, mood, topic, words."


def test_a_head_on_frozen_features_is_left_out_whatever_its_labels(tmp_path):
    make_reference("bert", "", 0).save_pretrained(tmp_path / "base")
    base = load_checkpoint(tmp_path / "base")
    featured, _ = fit_head(base, "tag", WANTED["slots"].labels, features=FeatureShape("mix"))
    _, heads = fit_members(featured, {"slots": WANTED["slots"], "words": WANTED["words"]})
    assert heads.tell() == "Heads begun anew: slots, words; left out: tag."
