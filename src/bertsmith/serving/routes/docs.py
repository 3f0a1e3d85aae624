"""The description of the server for programs and for people; the page needs nothing from anywhere else.

In: GET. Out: OpenAPI, and one page that lists its routes, shows each as a curl command and tries it.
"""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from bertsmith.serving.http.answering import JsonAnswer
from bertsmith.serving.http.openapi import describe

router = APIRouter()


def _check_wanted(request: Request) -> None:
    if not request.app.state.settings.docs:
        raise HTTPException(404)


@router.get("/openapi.json", tags=["bertsmith"], include_in_schema=False)
@router.get("/api-doc/openapi.json", tags=["tei"], include_in_schema=False)
def tell_openapi(request: Request) -> Response:  # in a thread, for the first time takes a while
    _check_wanted(request)
    return JsonAnswer(describe(request.app))


@router.get("/docs", tags=["bertsmith"], include_in_schema=False)
async def show_docs(request: Request) -> Response:
    _check_wanted(request)
    page, policy = read_page()
    return Response(page, headers={"content-security-policy": policy}, media_type="text/html; charset=utf-8")


@cache
def read_page() -> tuple[bytes, str]:
    """The page, and a policy that lets its own script and style run, and nothing else."""
    page = (files("bertsmith.serving.routes") / "docs.html").read_text(encoding="utf-8")
    policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    for tag in ("script", "style"):
        found = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert found is not None
        policy += f"; {tag}-src 'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"
    return page.encode(), f"{policy}; frame-ancestors 'none'"
