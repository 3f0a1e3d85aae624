"""The server that a competent person writes in an afternoon: FastAPI and sentence-transformers, nothing between them.

    MODEL=FOLDER uvicorn --app-dir benchmarks --factory plain_server:create_threaded     endpoints in the thread pool
    MODEL=FOLDER uvicorn --app-dir benchmarks --factory plain_server:create_async        endpoints on the event loop

It speaks OpenAI's /v1/embeddings. benchmarks/serving.py measures it beside `bertsmith serve`.
"""

import base64
import os

import torch
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer


class Asked(BaseModel):
    model: str = ""
    input: str | list[str]
    encoding_format: str = "float"


def answer(model: SentenceTransformer, asked: Asked) -> dict:
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    vectors = model.encode(texts, show_progress_bar=False)
    if asked.encoding_format == "base64":
        told = [base64.b64encode(vector.tobytes()).decode() for vector in vectors]
    else:
        told = vectors.tolist()
    data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(told)]
    return {"object": "list", "data": data, "model": asked.model, "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def load() -> SentenceTransformer:
    torch.set_num_threads(os.cpu_count() or 1)
    return SentenceTransformer(os.environ["MODEL"], device="cpu")


def create_threaded() -> FastAPI:
    app, model = FastAPI(), load()

    @app.post("/v1/embeddings")
    def embed(asked: Asked) -> dict:
        return answer(model, asked)

    return app


def create_async() -> FastAPI:
    app, model = FastAPI(), load()

    @app.post("/v1/embeddings")
    async def embed(asked: Asked) -> dict:
        return answer(model, asked)

    return app
