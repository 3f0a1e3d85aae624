"""What a loaded model is, in one line and in full. In: a `Model`. Out: a text, or plain JSON."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.models.graph import GraphNetwork
from bertsmith.resident import DEFAULTS

if TYPE_CHECKING:
    from bertsmith.model import Model


def list_heads(model: "Model") -> list[str]:
    return [name for name in model.checkpoint.heads if name != "pool"]


def name_in_a_line(model: "Model") -> str:
    config, heads = model.checkpoint.config, list_heads(model)
    labels = f" with {counted(len(model.checkpoint.labels), 'label')}" if {"classify", "tag"} & set(heads) else ""
    heads += [f"{name} ({', '.join(list_heads(other))})" for name, other in model.adapters.items()]
    return (
        f"<bertsmith.Model {str(model.folder)!r}: {model.checkpoint.settings.get('model_type', config.family)}, "
        f"{counted(config.depth, 'layer')} of {config.width}, {model.checkpoint.network.parameter_count:,} parameters, "
        f"heads: {', '.join(heads) or 'none'}{labels}, {model.dtype} on {model.device}>"
    )


def tell_graph(model: "Model") -> dict[str, str]:
    """The file of a model that has no weights."""
    network = model.checkpoint.network
    return {"graph": str(network.graph.path.relative_to(model.folder))} if isinstance(network, GraphNetwork) else {}


def describe(model: "Model") -> dict[str, Any]:
    config, sentence = model.checkpoint.config, model.embedder.sentence
    try:
        read = {"tokenizer": model.tokenizer.form, "mask_token": model.tokenizer.mask_token, "limit": model.limit,
                "vector_limit": model.embedder.limit}  # fmt: skip
    except BertsmithError as error:  # a folder of weights alone can still be looked at
        read = {"tokenizer": str(error), "limit": config.limit}
    return {
        "folder": str(model.folder),
        "family": model.checkpoint.settings.get("model_type", config.family),
        "depth": config.depth,
        "width": config.width,
        "attention_heads": config.heads,
        "inner": config.inner,
        "parameters": model.checkpoint.network.parameter_count,
        "heads": list_heads(model),
        "features": None if model.checkpoint.network.features is None else asdict(model.checkpoint.network.features),
        "labels": model.checkpoint.labels,
        "adapters": {name: list_heads(other) for name, other in model.adapters.items()},
        "default_for": model.trained.get(DEFAULTS, {}),
        "trained": {key: value for key, value in model.trained.items() if key in ("task", "run")},
        "vocabulary": config.vocabulary,
        **read,
        "pooling": "+".join(sentence.pooling.modes),
        "vector_width": model.vector_width,
        "normalize": sentence.pooling.normalize,
        "prompts": sentence.prompts,
        "device": str(model.device),
        "dtype": model.dtype,
        **tell_graph(model),
        "left_out": model.checkpoint.left_out,
    }
