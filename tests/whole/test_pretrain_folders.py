"""What a plan of a pretraining tells is what is done; what its folder holds suits others; what it learns from stays."""

import pytest
import transformers
from pretraining_made import pretrain

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_plan_counts_what_the_steps_read(corpus, tmp_path):
    """The first ones are smaller, and as many as the run itself makes."""
    said = []
    pretrain(corpus, tmp_path / "a", "smith", plan=True, say=said.append, tokens=512, first_tokens=256, ramp=0.5,
             max_steps=4)  # fmt: skip
    assert "4 steps, 1,792 tokens" in "\n".join(said)  # 256, 512, 512 and 512 in passes of 256
    pretrain(corpus, tmp_path / "a", "smith", plan=True, say=said.append, epochs=0.5)
    run = pretrain(corpus, tmp_path / "a", "smith", epochs=0.5)
    assert f"{run.outcome.steps} step" in next(line for line in reversed(said) if "how long" in line)


def test_others_cut_long_texts_where_the_encoder_ends(corpus, tmp_path):
    pretrain(corpus, tmp_path / "roberta", "roberta", max_steps=1)
    pretrain(corpus, tmp_path / "electra", "electra", max_steps=1)
    for folder in (tmp_path / "roberta", tmp_path / "electra", tmp_path / "electra" / "generator"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        cut = tokenizer("river " * 3000, truncation=True)["input_ids"]
        assert len(cut) == tokenizer.model_max_length == load_checkpoint(folder).config.limit


def test_a_run_never_clears_the_model_it_learns_from(corpus, tmp_path):
    pretrain(corpus, tmp_path / "mine", "electra", max_steps=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
    for source in (tmp_path / "mine", tmp_path / "mine" / "generator"):
        for given in ({"model": source}, {"teacher": str(source), "recipe": "distilbert"}):
            with pytest.raises(BertsmithError, match="from which this run learns; give another folder"):
                bertsmith.pretrain(corpus, tmp_path / "mine", overwrite=True, device="cpu", max_steps=1, **given)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
