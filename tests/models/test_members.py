"""Several heads on one encoder, of every family: written as an encoder with adapters, opened to the same numbers."""

import pytest
import torch
import transformers
from oracle import FAMILIES, make_reference

from bertsmith.data.batch import Batch
from bertsmith.models.adapters import read_members
from bertsmith.models.checkpoint import load_checkpoint
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
    fitted, said = fit_members(load_checkpoint(tmp_path / "base"), WANTED, seed=3, dropout=0.0)
    assert list(fitted.heads) == list(fitted.network.heads) == list(WANTED) == list(said)
    write_members(fitted, tmp_path / "out")
    again = open_members(tmp_path / "out", list(WANTED))
    theirs = dict(fitted.network.named_parameters())
    assert all(torch.equal(parameter, theirs[name]) for name, parameter in again.network.named_parameters())
    assert not torch.equal(theirs["heads.mood.out.weight"][:2], theirs["heads.topic.out.weight"][:2])
    _, loading = transformers.AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not loading["unexpected_keys"] and not [key for key in loading["missing_keys"] if "pooler" not in key]
    batch = Batch.of([[5, 6, 7, 8], [9, 10, 11]])
    members = read_members(tmp_path / "out", load_checkpoint(tmp_path / "out"))
    with torch.no_grad():
        for name, wanted in WANTED.items():
            network = members[name].network
            alone = network.score(network(batch), batch, wanted.kind)
            shared = fitted.network.eval().score(fitted.network(batch), batch, name)
            assert torch.equal(alone, shared), name


def test_a_classifier_with_these_labels_goes_on_in_each_member_that_fits(tmp_path):
    reference = make_reference("bert", "classify", 0, num_labels=2, id2label={0: "yes", 1: "no"})
    reference.save_pretrained(tmp_path / "base")
    fitted, said = fit_members(load_checkpoint(tmp_path / "base"), WANTED)
    assert said["mood"] == "the model's own head for classify goes on training."
    assert torch.equal(fitted.network.get_parameter("heads.mood.out.weight"), reference.classifier.weight)
    pooler = reference.bert.pooler.dense.weight
    assert all(torch.equal(fitted.network.get_parameter(f"heads.{n}.dense.weight"), pooler) for n in ("topic", "best"))
    parts = {fitted.network.get_parameter(f"heads.{n}.dense.weight").data_ptr() for n in ("mood", "topic", "best")}
    assert len(parts) == 3  # each learns its own
