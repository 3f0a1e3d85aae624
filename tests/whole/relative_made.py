"""Tiny encoders of the families with relative positions, with the files that their makers released."""

import io
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from whole.tiny import WORDS, pieces

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
ANGLE = ["<s>", "<pad>", "</s>", "<unk>"]


def make_mpnet(folder: Path, head: str, seed: int = 0) -> Path:
    folder.mkdir(parents=True)
    plain = [piece for piece in dict.fromkeys(pieces()) if not piece.startswith("[")]
    vocabulary = [*ANGLE, *plain, "[UNK]", "<mask>"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = transformers.MPNetConfig(
        vocab_size=len(vocabulary), max_position_embeddings=66, initializer_range=0.1, **SIZES
    )
    return save("MPNet", head, config, folder, seed)


def make_deberta(folder: Path, head: str, seed: int = 0) -> Path:
    folder.mkdir(parents=True)
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 20), model_writer=out, vocab_size=160, hard_vocab_limit=False, minloglevel=2,
        pad_id=0, pad_piece="[PAD]", bos_id=1, bos_piece="[CLS]", eos_id=2, eos_piece="[SEP]", unk_id=3,
        unk_piece="[UNK]",
    )  # fmt: skip
    (folder / "spm.model").write_bytes(out.getvalue())
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "vocab_type": "spm"}\n')
    config = transformers.DebertaV2Config(
        vocab_size=170, max_position_embeddings=64, initializer_range=0.1, relative_attention=True, position_buckets=16,
        pos_att_type="p2c|c2p", share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False, **SIZES,
    )  # fmt: skip
    return save("DebertaV2", head, config, folder, seed)


def save(name: str, head: str, config: Any, folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    model = getattr(transformers, f"{name}{head}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    model.save_pretrained(folder)
    return folder


MAKERS = {"mpnet": make_mpnet, "deberta-v2": make_deberta}
