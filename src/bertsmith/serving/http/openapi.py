"""The description of the server for programs: OpenAPI, with examples that run and the errors as they really look.

In: the app. Out: the document, made once.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from bertsmith.serving.http.complaints import STYLES, Complaint, shape

SUMMARY = (
    "Masks filled, texts classified, tagged, compared, ranked and turned into vectors by models of the BERT family, in "
    "the shapes that clients of OpenAI, text-embeddings-inference, Hugging Face and Cohere know."
)
TAGS = [
    {"name": "openai", "description": "Vectors, classes and the list of models, for OpenAI's clients and infinity's."},
    {"name": "tei", "description": "The routes of Hugging Face's text-embeddings-inference."},
    {"name": "huggingface", "description": "Every task of Hugging Face's inference API, for `InferenceClient`."},
    {"name": "cohere", "description": "Ranking, for clients of Cohere and Jina."},
    {"name": "bertsmith", "description": "Every job with all of its fields and the whole result."},
    {"name": "health", "description": "Whether the server lives and is ready, and what it has done."},
]
REFUSED = (
    "Refused, with a sentence that says why: 4xx where the request is at fault, 429 with Retry-After where too much "
    "waits, 503 where no model is there, 504 where it took too long."
)


def describe(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = _make(app)
    return app.openapi_schema


def _make(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, description=SUMMARY, routes=app.routes, tags=TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )  # fmt: skip
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)  # FastAPI's own shape of errors, which no route here has
    for style in STYLES:
        example = shape(Complaint("input", "the field 'inputs' is missing.", "inputs"), style, 400, "0a1b2c3d4e5f6071")
        schemas[_name(style)] = {"type": "object", "required": list(example), "examples": [example]}
    for operations in found["paths"].values():
        for operation in operations.values():
            _describe_errors(operation)
    if app.state.settings.keys:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"key": []}]
    return found


def _describe_errors(operation: dict[str, Any]) -> None:
    style = operation.get("tags", ["bertsmith"])[0]
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{_name(style)}"}}}
    operation["responses"].pop("422", None)
    operation["responses"]["4XX"] = {"description": REFUSED, "content": content}
    operation["responses"]["5XX"] = {"description": "Not answered, by no fault of the request.", "content": content}


def _name(style: str) -> str:
    return f"{style.capitalize()}Error" if style in STYLES else "BertsmithError"
