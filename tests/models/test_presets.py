"""The presets have the sizes that were published, and count as the reference counts."""

import pytest
import torch
import transformers

import bertsmith
from bertsmith.models.families import find_preset

# Millions of parameters. A count "with heads" is that of the checkpoint's file, pretraining heads included and tied
# matrices once; ours has them too. Where a source has a rounder figure than another, the finer one stands here.
PUBLISHED = {
    # google-research/bert, README, and "Well-Read Students Learn Better" (arXiv 1908.08962): without heads
    "bert-tiny": 4.4,
    "bert-mini": 11.3,
    "bert-small": 29.1,
    "bert-medium": 41.7,
    # transformers 4.4 documentation, "Pretrained models": with heads
    "bert-base": 110,
    "bert-base-cased": 109,
    "bert-base-multilingual": 179,
    "bert-large": 336,
    # Hugging Face Hub, sentence-transformers/all-MiniLM-L6-v2 and -L12-v2: encoder and pooler, without heads
    "minilm-l6-h384": 22.7,
    "minilm-l12-h384": 33.4,
    # fairseq, examples/roberta/README, which does not say; the files with heads have 124.7M and 355.4M
    "roberta-base": 125,
    "roberta-large": 355,
    # Hugging Face Hub, FacebookAI/xlm-roberta-base: with heads; XLM-R's paper rounds to 270M and 550M
    "xlm-roberta-base": 278,
    "xlm-roberta-large": 560,
    # Hugging Face Hub, camembert-base: with heads; the paper (arXiv 1911.03894) rounds to 110M
    "camembert-base": 111,
    # Hugging Face Hub, albert/albert-*-v2: with heads; the paper (arXiv 1909.11942) has 12M, 18M, 60M, 235M
    "albert-base": 11.8,
    "albert-large": 17.9,
    "albert-xlarge": 59,
    "albert-xxlarge": 223,
    # Hugging Face Hub, distilbert-base-uncased and -cased: with heads; the paper (arXiv 1910.01108) says 66M, without
    "distilbert-base": 67,
    "distilbert-base-cased": 65.8,
    # Hugging Face Hub, google/electra-*-discriminator: with the head; google-research/electra has 14M, 110M, 335M
    "electra-small": 13.5,
    "electra-base": 109,
    "electra-large": 335,
    # The cards of answerdotai/ModernBERT-base and -large, which fit the count without heads
    "modernbert-base": 149,
    "modernbert-large": 395,
    # Hugging Face Hub, sentence-transformers/all-mpnet-base-v2: encoder and pooler, without the head
    "mpnet-base": 109,
    # The cards of microsoft/deberta-v3-*, which give the backbone and the word table apart
    "deberta-v3-xsmall": 22 + 48,
    "deberta-v3-small": 44 + 98,
    "deberta-v3-base": 86 + 98,
    "deberta-v3-large": 304 + 131,
    "mdeberta-v3-base": 86 + 190,
    # arXiv 2006.03654 and transformers' documentation
    "deberta-v2-xlarge": 900,
}
# Where the only figures are rounder than a hundredth: 48 for 128,100 × 384, 190 for 251,000 × 768, and 900.
ROUNDED = ("deberta-v3-xsmall", "mdeberta-v3-base", "deberta-v2-xlarge")
COUNTS = {row["preset"]: row["parameters"] for row in bertsmith.models_table()}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_as_many_parameters_as_published(preset: str):
    assert COUNTS[preset] / 1e6 == pytest.approx(PUBLISHED[preset], rel=0.015 if preset in ROUNDED else 0.01)


def test_only_generators_have_no_published_count():
    assert set(COUNTS) - set(PUBLISHED) == {f"electra-{size}-generator" for size in ("small", "base", "large")}


@pytest.mark.parametrize("preset", COUNTS)
def test_the_reference_counts_the_same(preset: str):
    """To the last parameter, with the heads that the family is pretrained with."""
    family, config = find_preset(preset)
    settings = transformers.AutoConfig.for_model(**family.settings(config, {}))
    both = family.name in ("bert", "albert") or (family.name == "electra" and "generator" not in preset)
    auto = transformers.AutoModelForPreTraining if both else transformers.AutoModelForMaskedLM
    with torch.device("meta"):
        model = auto.from_config(settings)
    assert COUNTS[preset] == sum(parameter.numel() for parameter in model.parameters())


def test_every_row_is_whole():
    for row in bertsmith.models_table():
        assert row["width"] % row["heads"] == 0
        assert row["positions"] == (8192 if row["family"] == "modernbert" else 512)
        assert all(row[name] for name in ("family", "preset", "depth", "inner", "vocabulary", "parameters"))
