"""Every job with something to ask, and what the library says to it."""

import numpy as np

TEXTS = ["the film was good", "ann lives in oslo and works at the river .", "a plot so poor"]
EVERY_JOB = [
    ("fill", "fill", {"text": "the [MASK] was good", "top_k": 3}),
    ("fill", "fill", {"text": ["the [MASK] was [MASK]", "a [MASK]"], "targets": ["good", "film"]}),
    ("follows", "follows", {"a": "the film", "b": "was good"}),
    ("follows", "fill", {"text": "the [MASK] [MASK] was good"}),
    ("classify", "classify", {"text": TEXTS}),
    ("classify", "classify", {"text": TEXTS[0], "pair": TEXTS[1], "top_k": 1}),
    ("classify", "classify", {"text": TEXTS[1], "labels": ["sport", "news"]}),
    ("score", "score", {"text": TEXTS, "pair": TEXTS[::-1]}),
    ("score", "rerank", {"query": TEXTS[0], "texts": TEXTS}),
    ("tag", "tag", {"text": TEXTS}),
    ("tag", "tag", {"text": TEXTS[1], "aggregation": "none"}),
    ("answer", "answer", {"question": "who lives here", "context": TEXTS[1] * 9, "top_k": 2}),
    ("choose", "choose", {"prompt": TEXTS[0], "choices": TEXTS}),
    ("bare", "embed", {"texts": TEXTS}),
    ("bare", "embed", {"texts": TEXTS[1] * 9, "truncate": "windows", "normalize": True, "dims": 8}),
    ("bare", "hidden", {"texts": TEXTS, "layers": [0, -1]}),
    ("bare", "similar", {"text": TEXTS[0], "others": TEXTS[1:]}),
    ("bare", "tokenize", {"text": TEXTS}),
    ("bare:liked", "classify", {"text": TEXTS}),
    ("bare:better", "classify", {"text": TEXTS[0], "pair": TEXTS[2]}),
    ("bare:names", "tag", {"text": "Ann lives in Rome"}),
]


def ask_library(model, job, given):
    return getattr(model, job)(**given)


def same(reply, said):
    """Whether a reply holds what the library said."""
    if reply.vectors is not None:
        rows = [said] if reply.single else list(said)
        assert len(rows) == len(reply.vectors)
        for found, row in zip(reply.vectors, rows, strict=True):
            np.testing.assert_allclose(found, np.asarray(row), atol=2e-6)
        assert reply.truncated == [row.truncated for row in rows]
        return
    results = [said] if reply.single else list(said)
    assert len(results) == len(reply.results)
    for found, result in zip(reply.results, results, strict=True):
        if hasattr(result, "as_dict"):
            near(found, result.as_dict())
        else:
            assert found["ids"] == list(result.ids) and found["pieces"] == list(result.pieces)


def near(found, expected):
    """Equal, but for the rounding of scores."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            near(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            near(one, other)
    elif isinstance(expected, float):
        assert abs(found - expected) < 1e-5
    else:
        assert found == expected
