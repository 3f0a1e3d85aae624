"""Two encoders in plain numpy, from the tensors of a file alone: what `inspect step` prints must come out here too."""

from dataclasses import dataclass
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

Array = np.ndarray[Any, Any]
erfs = np.vectorize(erf)


@dataclass
class Done:
    """One head's step for one token."""

    x: Array
    q: Array
    k: Array
    v: Array
    turned_q: Array
    turned_k: Array
    dots: Array
    scaled: Array
    weights: Array
    result: Array


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + erfs(x / sqrt(2)))


def softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def norm(x: Array, weight: Array, bias: Array | float, eps: float) -> Array:
    middle = x.mean(axis=-1, keepdims=True)
    return (x - middle) / np.sqrt(((x - middle) ** 2).mean(axis=-1, keepdims=True) + eps) * weight + bias


def heads_of(x: Array, heads: int) -> Array:
    """(tokens, width) -> (heads, tokens, size)"""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def mask(scores: Array, causal: bool, window: int = 0) -> Array:
    far = np.arange(scores.shape[-1])[:, None] - np.arange(scores.shape[-1])
    hidden = (far < 0) & causal | (np.abs(far) > window) & bool(window)
    return np.where(hidden, -np.inf, scores)


def pick(x: Array, parts: list[Array], turned: list[Array], seen: Array, head: int, token: int) -> Done:
    """`seen` are the scores by √size, masked."""
    q, k, v = (part[head] for part in parts)
    by, to = (part[head] for part in turned)
    dots = to @ by[token]
    weights = softmax(seen[head, token])
    return Done(x[token], q[token], k, v, by[token], to, dots, dots / sqrt(len(q[token])), weights, weights @ v)


def run_bert(folder: Path, ids: list[int], segments: list[int], heads: int, causal: bool) -> list[Any]:
    """Of each layer a function (head, token) -> Done. Everything after https://arxiv.org/abs/1810.04805."""
    t = {name: tensor.astype(np.float64) for name, tensor in load_file(folder / "model.safetensors").items()}
    linear = lambda x, name: x @ t[f"{name}.weight"].T + t[f"{name}.bias"]  # noqa: E731
    normed = lambda x, name: norm(x, t[f"{name}.weight"], t[f"{name}.bias"], 1e-12)  # noqa: E731
    table = lambda name, rows: t[f"embeddings.{name}_embeddings.weight"][rows]  # noqa: E731
    x = table("word", ids) + table("token_type", segments) + table("position", list(range(len(ids))))
    x = normed(x, "embeddings.LayerNorm")
    found = []
    for layer in range(3):
        at = f"encoder.layer.{layer}"
        parts = [heads_of(linear(x, f"{at}.attention.self.{name}"), heads) for name in ("query", "key", "value")]
        seen = mask(parts[0] @ parts[1].transpose(0, 2, 1) / sqrt(parts[0].shape[-1]), causal)
        found.append(lambda head, token, x=x, parts=parts, seen=seen: pick(x, parts, parts[:2], seen, head, token))
        mixed = (softmax(seen) @ parts[2]).transpose(1, 0, 2).reshape(len(x), -1)
        x = normed(x + linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        inner = gelu(linear(x, f"{at}.intermediate.dense"))
        x = normed(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return found


def turn(x: Array, theta: float) -> Array:
    """Rotary positions (https://arxiv.org/abs/2104.09864), pair by pair: number i with number i + size / 2."""
    size = x.shape[-1]
    turned = x.copy()
    for place in range(x.shape[1]):
        for pair in range(size // 2):
            angle = place / theta ** (2 * pair / size)
            left, right = x[:, place, pair], x[:, place, pair + size // 2]
            turned[:, place, pair] = left * np.cos(angle) - right * np.sin(angle)
            turned[:, place, pair + size // 2] = right * np.cos(angle) + left * np.sin(angle)
    return turned


def run_modernbert(folder: Path, ids: list[int], heads: int, causal: bool, window: int) -> list[Any]:
    """The same for https://arxiv.org/abs/2412.13663: norms first, no biases, every third layer global."""
    t = {name: tensor.astype(np.float64) for name, tensor in load_file(folder / "model.safetensors").items()}
    normed = lambda x, name: norm(x, t[f"{name}.weight"], 0.0, 1e-5)  # noqa: E731
    x = normed(t["embeddings.tok_embeddings.weight"][ids], "embeddings.norm")
    found = []
    for layer in range(3):
        at = f"layers.{layer}"
        read = normed(x, f"{at}.attn_norm") if layer else x
        parts = [heads_of(part, heads) for part in np.split(read @ t[f"{at}.attn.Wqkv.weight"].T, 3, axis=1)]
        turned = [turn(part, 10_000.0 if layer % 3 else 160_000.0) for part in parts[:2]]
        scores = turned[0] @ turned[1].transpose(0, 2, 1) / sqrt(parts[0].shape[-1])
        seen = mask(scores, causal, window if layer % 3 else 0)
        found.append(
            lambda head, token, x=read, parts=parts, by=turned, seen=seen: pick(x, parts, by, seen, head, token)
        )
        mixed = (softmax(seen) @ parts[2]).transpose(1, 0, 2).reshape(len(x), -1)
        x = x + mixed @ t[f"{at}.attn.Wo.weight"].T
        gate, value = np.split(normed(x, f"{at}.mlp_norm") @ t[f"{at}.mlp.Wi.weight"].T, 2, axis=1)
        x = x + (gelu(gate) * value) @ t[f"{at}.mlp.Wo.weight"].T
    return found
