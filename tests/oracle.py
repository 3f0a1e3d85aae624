"""Made models of the reference implementation, random in every parameter, and the comparison with ours.

One helper for every family and head: save the reference's model, load it here, run ragged rows through both.
"""

from pathlib import Path
from typing import Any

import torch
import transformers

from bertsmith.data.batch import Batch
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint

SIZES = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80}
ROBERTA = {**SIZES, "max_position_embeddings": 66, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
MODERN = {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
DEBERTA = {
    **SIZES, "max_position_embeddings": 64, "relative_attention": True, "position_buckets": 16, "layer_norm_eps": 1e-7,
    "pos_att_type": "p2c|c2p", "share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False,
}  # fmt: skip
MIXED = {
    "conv_kernel_size": 5, "type_vocab_size": 2, "position_biased_input": True, "hidden_act": "relu",
    "pooler_hidden_act": "tanh", "max_position_embeddings": 200,
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {**SIZES, "max_position_embeddings": 64}),
    "bert-relu": ("Bert", {**SIZES, "max_position_embeddings": 64, "hidden_act": "relu", "layer_norm_eps": 1e-6}),
    "roberta": ("Roberta", ROBERTA),
    "xlm-roberta": ("XLMRoberta", ROBERTA),
    "camembert": ("Camembert", ROBERTA),
    "albert": ("Albert", {**SIZES, "max_position_embeddings": 64, "embedding_size": 16}),
    "albert-groups": ("Albert", {**SIZES, "max_position_embeddings": 64, "embedding_size": 16, "num_hidden_groups": 2}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 97, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 80, "max_position_embeddings": 64},
    ),
    "electra": ("Electra", {**SIZES, "max_position_embeddings": 64, "embedding_size": 16}),
    "mpnet": ("MPNet", {**SIZES, "max_position_embeddings": 66, "pad_token_id": 1, "layer_norm_eps": 1e-5}),
    "deberta-v3": ("DebertaV2", DEBERTA),
    "deberta-v2": (
        "DebertaV2",
        {**DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu", "legacy": False, "position_buckets": -1},
    ),
    "deberta-mixed": (
        "DebertaV2",
        {**DEBERTA, **MIXED},
    ),
    "electra-wide": ("Electra", {**SIZES, "max_position_embeddings": 64, "embedding_size": 48}),
    "modernbert": ("ModernBert", {**SIZES, **MODERN, "max_position_embeddings": 64, "local_attention": 8}),
    "modernbert-bias": (
        "ModernBert",
        {
            **SIZES,
            **MODERN,
            "max_position_embeddings": 64,
            "local_attention": 16,
            "attention_bias": True,
            "mlp_bias": True,
            "norm_bias": True,
            "classifier_bias": True,
            "classifier_pooling": "mean",
            "classifier_activation": "relu",
        },
    ),
}
HEADS = {
    "": "Model",
    "mask": "ForMaskedLM",
    "follows": "ForNextSentencePrediction",
    "classify": "ForSequenceClassification",
    "tag": "ForTokenClassification",
    "span": "ForQuestionAnswering",
    "choose": "ForMultipleChoice",
    "pretraining": "ForPreTraining",
}
CASES = [(f, h) for f, (name, _) in FAMILIES.items() for h in HEADS if hasattr(transformers, name + HEADS[h])]
Rows = list[torch.Tensor]
LENGTHS = (17, 5, 60, 23, 1, 5)


def make_reference(family: str, head: str, seed: int = 0, **settings: Any) -> Any:
    """A model of the reference with every parameter random, norms and biases too."""
    class_name, sizes = FAMILIES[family]
    model_class = getattr(transformers, class_name + HEADS[head])
    labels = {"num_labels": 2 if head == "span" or (head == "pretraining" and class_name == "Albert") else 5}
    model = model_class(model_class.config_class(**{**sizes, **labels, **settings})).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 1.0 if "orm.weight" in name else 0.0
            parameter.copy_(scale + 0.25 * torch.randn(parameter.shape, generator=generator))
    return model


def make_rows(model: Any, lengths: tuple[int, ...] = LENGTHS, seed: int = 1) -> tuple[Rows, Rows]:
    """Ragged rows of ids, and their segments (a second half where the model knows one)."""
    generator = torch.Generator().manual_seed(seed)
    ids = [torch.randint(3, 97, (n,), generator=generator) for n in lengths]
    kinds = getattr(model.config, "type_vocab_size", 0) or 1
    return ids, [(torch.arange(n) >= n // 2).long() * int(kinds > 1) for n in lengths]


def pad(rows: Rows, value: int, side: str) -> torch.Tensor:
    longest = max(len(row) for row in rows)
    padded = torch.full((len(rows), longest), value)
    for place, row in zip(padded, rows, strict=True):
        place[slice(0, len(row)) if side == "right" else slice(longest - len(row), longest)] = row
    return padded


def run_reference(model: Any, ids: Rows, segments: Rows, side: str = "right", **more: Any) -> Any:
    mask = pad([torch.ones_like(row) for row in ids], 0, side)
    given = {"input_ids": pad(ids, model.config.pad_token_id, side), "attention_mask": mask}
    if getattr(model.config, "type_vocab_size", 0):
        given["token_type_ids"] = pad(segments, 0, side)
    if side == "left" and not model.config.model_type.endswith(("roberta", "camembert", "mpnet")):
        given["position_ids"] = pad([torch.arange(len(row)) for row in ids], 0, side)
    with torch.no_grad():
        return model(**given, **more)


def unpad(padded: torch.Tensor, ids: Rows, side: str = "right") -> torch.Tensor:
    longest = padded.shape[1]
    starts = [0 if side == "right" else longest - len(row) for row in ids]
    return torch.cat([x[s : s + len(row)] for x, s, row in zip(padded, starts, ids, strict=True)])


def load_saved(model: Any, folder: Path) -> Checkpoint:
    model.save_pretrained(folder)
    return load_checkpoint(folder)


def as_batch(ids: Rows, segments: Rows) -> Batch:
    return Batch.of([row.tolist() for row in ids], [row.tolist() for row in segments])


def distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference, relative to the scale of the numbers."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()
