"""The page on which people play with every job: a few files, which a browser keeps for as long as they do not change.

In: GET / by a browser, and GET /page/NAME. Out: files of `serving/page/`, and the scripts and the look that saved
pictures have, too. What the page shows comes from `/v1/jobs`.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

router = APIRouter()
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOLDERS = (("bertsmith.serving", "page"), ("bertsmith.inspection", "pictures"))
HIDDEN = "shell.html"  # of a picture that is saved as a file
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Part:
    body: bytes
    kind: str
    tag: str  # another one for other bytes


@cache
def read_parts() -> dict[str, Part]:
    """Every file that may be asked for, by its name: a path that is made up leads nowhere."""
    found = {}
    for package, folder in FOLDERS:
        for file in (files(package) / folder).iterdir():
            suffix = "." + file.name.rpartition(".")[2]
            if suffix in TYPES and file.name != HIDDEN:
                body = file.read_bytes()
                found[file.name] = make_part(body, TYPES[suffix])
    names = sorted(name for name in found if name.endswith(".js"))
    for name in names:  # a picture's script in one piece: the one that is called as its kind, and the parts of it
        more = [found[part].body for part in names if part.startswith(name.removesuffix(".js") + "_")]
        found[f"picture_{name}"] = make_part(b"\n".join([found[name].body, *more]), TYPES[".js"])
    return found


def make_part(body: bytes, kind: str) -> Part:
    return Part(body, kind, f'"{hashlib.sha256(body).hexdigest()[:20]}"')


def wants_page(request: Request) -> bool:
    """Whether a browser asks, which names HTML; clients of the API name JSON or take anything."""
    kinds = [part.partition(";")[0].strip() for part in request.headers.get("accept", "").lower().split(",")]
    return "text/html" in kinds and "application/json" not in kinds[: kinds.index("text/html")]


def show(name: str, request: Request) -> Response:
    part = read_parts().get(name)
    if part is None or not request.app.state.settings.page:
        raise HTTPException(404)
    headers = {"etag": part.tag, "cache-control": "no-cache", "content-security-policy": POLICY}
    if name == "index.html":
        headers["vary"] = "accept"
    if part.tag in [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(part.body, headers=headers, media_type=f"{part.kind}; charset=utf-8")


@router.get("/page/{name}", tags=["bertsmith"], include_in_schema=False)
async def show_part(request: Request, name: str) -> Response:
    if name == "index.html":  # it stands at /, where the names in it lead to the others
        raise HTTPException(404)
    return show(name, request)
