"""The command line with a stub in the place of `bertsmith.load`: run as a script, or its `load` patched in.

The stub keeps to the façade's contract and answers from the text alone, so that a test can say what must come out.
"""

import bertsmith
from bertsmith.cli import main
from bertsmith.errors import BertsmithError

LIMIT = 8  # words a text may have; the rest is cut


class Result:
    def __init__(self, answers, truncated=0, joint=None):
        self.answers, self.truncated, self.joint = answers, truncated, joint

    def as_dict(self):
        return {"answers": self.answers, "truncated": self.truncated} | ({"joint": self.joint} if self.joint else {})


class Encoding:
    def __init__(self, text, pair):
        words = text.split() + (pair.split() if pair else [])
        self.pieces = ["[CLS]", *words]
        self.ids = [101, *(2000 + len(word) for word in words)]
        self.offsets = [(0, 0), *((index, index + 1) for index in range(len(words)))]
        self.words = [None, *range(len(words))]
        self.segments = [0] * (1 + len(text.split())) + [1] * (len(pair.split()) if pair else 0)


class Model:
    def __init__(self, source, **options):
        self.source, self.options = str(source), options

    def fill(self, texts, *, top_k=5, targets=None, truncate="windows"):
        return [self._fill(text, top_k, targets, truncate) for text in texts]

    def _fill(self, text, top_k, targets, truncate):
        masks = text.count("[MASK]")
        if not masks:
            raise BertsmithError("there is no [MASK] in the text.")
        words = (targets or ["paris", "lyon", "nice", "metz", "lens", "caen"])[:top_k]
        answers = [
            {"sequence": text.replace("[MASK]", word), "score": 0.5**rank, "token": 2000 + rank, "token_str": word}
            for rank, word in enumerate(words, 1)
        ]
        joint = [{"sequence": text.replace("[MASK]", words[0]), "score": 0.25}]
        return Result([answers] * masks, 0, joint) if masks > 1 else Result(answers, cut(text, truncate))

    def follows(self, first, second, *, truncate="head"):
        if self.source == "headless":
            raise BertsmithError("there is no head.")
        return [
            Result(
                [{"label": "follows", "score": 0.75}, {"label": "random", "score": 0.25}], cut(a + " " + b, truncate)
            )
            for a, b in zip(first, second, strict=True)
        ]

    def embed(self, texts, *, prompt=None, truncate="head", normalize=None, dims=None):
        import numpy as np

        texts = [(prompt or "") + text for text in texts]

        class Vectors(np.ndarray):
            pass

        rows = [[len(text), text.count(" "), 0.5, float("nan") if text == "nan" else 1] for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 4).view(Vectors)
        vectors.truncated = [cut(text, truncate) for text in texts]
        return vectors

    def tokenize(self, text, pair=None):
        return Encoding(text, pair)

    def info(self):
        return {"family": "bert", "parameters": 1234567, "heads": ["fill"], "source": self.source, **self.options}


def cut(text, truncate):
    dropped = max(len(text.split()) - LIMIT, 0)
    if dropped and truncate == "error":
        raise BertsmithError(f"the text is {dropped} tokens too long.")
    return dropped


def load(source, *, device="auto", dtype="float32", download=False, threads=None, batch_tokens=None):
    if source == "interrupt":
        raise KeyboardInterrupt
    if source == "missing":
        raise BertsmithError("there is no folder 'missing'.")
    return Model(source, device=device, dtype=dtype, download=download, threads=threads, batch_tokens=batch_tokens)


if __name__ == "__main__":
    bertsmith.load = load
    main()
