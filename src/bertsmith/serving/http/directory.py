"""Which route a path is of, before any route is asked: for the style of a refusal, the log and the metrics.

In: the routers and a request's method and path. Out: the route's template and its style.
"""

from collections.abc import Iterable

from fastapi import APIRouter
from fastapi.routing import APIRoute

from bertsmith.serving.http.complaints import STYLES

UNKNOWN = "unmatched"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})


class Directory:
    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self.routes = routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
        self.plain: dict[tuple[str, str], tuple[str, str]] = {}
        self.paths: dict[str, tuple[str, str]] = {}
        self.patterned = [route for route in routes if "{" in route.path]
        for route in routes:
            if "{" not in route.path:
                self.paths.setdefault(route.path, (route.path, style_of(route)))
                for method in route.methods or ():
                    self.plain.setdefault((method, route.path), (route.path, style_of(route)))

    def find(self, method: str, path: str) -> tuple[str, str]:
        """The template and the style; for a path that is not there, the style of those who would ask it."""
        found = self.plain.get((method, path)) or self.paths.get(path)
        if found:
            return found
        for route in self.patterned:
            if route.path_regex.match(path):
                return route.path, style_of(route)
        if path.startswith("/v1/jobs"):
            return UNKNOWN, "bertsmith"
        return UNKNOWN, "openai" if path.startswith("/v1/") else "bertsmith"

    def list_methods(self, path: str) -> list[str]:
        """What a path takes, over all of its routes; FastAPI tells only those of the first, and none takes HEAD."""
        routes = [route for route in self.routes if route.path_regex.match(path)]
        methods = {method for route in routes for method in route.methods or ()}
        return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def style_of(route: APIRoute) -> str:
    first = str(route.tags[0]) if route.tags else ""
    return first if first in STYLES else "bertsmith"
