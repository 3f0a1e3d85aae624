"""Makes the fixtures in `tensorflow/` with the real TensorFlow; see README.md. Run: `python make_tensorflow.py`.

`tensors()`, `others()` and `VOCABULARY` need only numpy, so the tests make from them what they expect to read.
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "tensorflow"

CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": 99,
}

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = (
    ". , ? ! ' the of and to in is was it for on with as at by from he she they we you are be this that which not but "
    "have had his her bank river money man dog cat"
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + c for c in LETTERS), *WORDS.split()]


def shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes as google-research/bert has them (modeling.py, run_pretraining.py)."""
    width, inner, size = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    names: dict[str, tuple[int, ...]] = {}

    def dense(name: str, given: int, out: int) -> None:
        names[f"{name}/kernel"], names[f"{name}/bias"] = (given, out), (out,)

    def norm(name: str) -> None:
        names[f"{name}/LayerNorm/gamma"] = names[f"{name}/LayerNorm/beta"] = (width,)

    names["bert/embeddings/word_embeddings"] = (size, width)
    names["bert/embeddings/token_type_embeddings"] = (CONFIG["type_vocab_size"], width)
    names["bert/embeddings/position_embeddings"] = (CONFIG["max_position_embeddings"], width)
    norm("bert/embeddings")
    for number in range(CONFIG["num_hidden_layers"]):
        layer = f"bert/encoder/layer_{number}"
        for part in ("query", "key", "value"):
            dense(f"{layer}/attention/self/{part}", width, width)
        dense(f"{layer}/attention/output/dense", width, width)
        norm(f"{layer}/attention/output")
        dense(f"{layer}/intermediate/dense", width, inner)
        dense(f"{layer}/output/dense", inner, width)
        norm(f"{layer}/output")
    dense("bert/pooler/dense", width, width)
    dense("cls/predictions/transform/dense", width, width)
    norm("cls/predictions/transform")
    names["cls/predictions/output_bias"] = (size,)
    names["cls/seq_relationship/output_weights"] = (2, width)
    names["cls/seq_relationship/output_bias"] = (2,)
    return names


def tensors() -> dict[str, np.ndarray]:
    """The tiny BERT. RandomState, not default_rng: its stream is promised never to change."""
    draw = np.random.RandomState(0)
    values = {}
    for name, shape in shapes().items():
        value = 0.1 * draw.standard_normal(shape)
        values[name] = (value + 1 if name.endswith("gamma") else value).astype(np.float32)
    values["global_step"] = np.array(1234, np.int64)
    return values


def others() -> dict[str, np.ndarray]:
    """One of each type, with odd sizes: what follows `a_bool` does not lie on a multiple of its own size."""
    draw = np.random.RandomState(1)
    values = 8 * draw.standard_normal((3, 5))
    return {
        "a_bool": np.array([True, False, True]),
        "b_float32": values.astype(np.float32),
        "c_float16": values.astype(np.float16),
        "d_float64": values,
        "e_int32": values.astype(np.int32),
        "f_int64": values.astype(np.int64) << 40,
        "g_bfloat16": np.round(values).astype(np.float32),  # exact in bfloat16, which numpy lacks
        "h_empty": np.zeros((0, 4), np.float32),
    }


def save(prefix: Path, values: dict) -> None:
    import tensorflow as tf

    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=list(values.values()),
    )


def main() -> None:
    import tensorflow as tf

    for folder in (HERE, HERE / "two_shards", HERE / "sliced"):
        folder.mkdir(parents=True, exist_ok=True)
    (HERE / "bert_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (HERE / "vocab.txt").write_text("".join(piece + "\n" for piece in VOCABULARY))
    save(HERE / "bert_model.ckpt", {name: tf.constant(value) for name, value in tensors().items()})

    # Two devices each save a part and the parts are merged, as tf.compat.v1.train.Saver(sharded=True) does.
    mixed = {name: tf.constant(value) for name, value in others().items()}
    mixed["g_bfloat16"] = tf.cast(mixed["g_bfloat16"], tf.bfloat16)
    mixed["i_string"] = tf.constant(["no", "weights"])
    names, parts = list(mixed), [HERE / "two_shards" / "part0", HERE / "two_shards" / "part1"]
    save(parts[0], {name: mixed[name] for name in names[:4]})
    save(parts[1], {name: mixed[name] for name in names[4:]})
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(part) for part in parts], destination_prefix=str(HERE / "two_shards" / "model.ckpt-7")
    )
    tf.raw_ops.SaveV2(  # the upper half of a partitioned variable
        prefix=str(HERE / "sliced" / "model.ckpt"),
        tensor_names=["partitioned"],
        shape_and_slices=["4 2 0,2:0,2"],
        tensors=[tf.ones((2, 2))],
    )


if __name__ == "__main__":
    main()
