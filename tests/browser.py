"""A real browser for tests: pages opened as a person would, with nothing allowed that a good page does not do.

`browser` (a fixture) is a Chromium: the one that BERTSMITH_CHROMIUM names, or one on the PATH. Where there is none the
tests are skipped, which the end of the run says; with BERTSMITH_NEED_BROWSER=1 they fail instead.
`open_page` (a fixture) opens a file or an address and fails the test on a request to another origin, on an error in
the console and on an error that no one caught.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium: install one or name it in BERTSMITH_CHROMIUM; what people see in a browser is NOT tested"
DESK, PHONE = {"width": 1180, "height": 820}, {"width": 390, "height": 844}


def find_chromium() -> str | None:
    named = os.environ.get("BERTSMITH_CHROMIUM")
    if named and shutil.which(named) is None:
        pytest.fail(f"BERTSMITH_CHROMIUM is {named!r}, which is no program.", pytrace=False)
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def do_without(why: str) -> None:
    if os.environ.get("BERTSMITH_NEED_BROWSER") == "1":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


# Of a module and not of the session: an open playwright keeps its event loop running in this thread, and the tests of
# other modules could not start one of theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a window."""
    program = find_chromium()
    if program is None:
        do_without(MISSING)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        do_without("no Chromium: playwright is not installed (pip install -e '.[test]')")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Pages:
    """Opens pages and remembers what they should not have done."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.contexts: list[Any] = []
        self.troubles: list[str] = []

    def __call__(
        self, place: str | Path, *, phone: bool = False, dark: bool = False, size: tuple[int, int] | None = None,
        allow: tuple[str, ...] = (), wait: str = "load",
    ) -> Any:  # fmt: skip
        """A playwright page of a file or an address.

        `allow` are parts of messages in the console that the test expects; `wait` is what playwright calls wait_until.
        """
        address = place.resolve().as_uri() if isinstance(place, Path) else place
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]} if size else PHONE if phone else DESK,
            has_touch=phone, is_mobile=phone, color_scheme="dark" if dark else "light",
        )  # fmt: skip
        context.set_default_timeout(10_000)
        self.contexts.append(context)
        page = context.new_page()
        self.watch(page, address, allow)
        page.goto(address, wait_until=wait)
        return page

    def watch(self, page: Any, address: str, allow: tuple[str, ...]) -> None:
        def is_home(url: str) -> bool:
            one, home = urlsplit(url), urlsplit(address)
            if one.scheme in ("data", "blob", "about"):
                return True
            # A file is an origin of its own: none but itself.
            return one.path == home.path if home.scheme == "file" else one.netloc == home.netloc

        def guard(route: Any) -> None:
            if is_home(route.request.url):
                route.continue_()
            else:
                self.troubles.append(f"asked for {route.request.url}")
                route.abort()

        def listen(message: Any) -> None:
            if message.type == "error" and not any(part in message.text for part in allow):
                self.troubles.append(f"console: {message.text}")

        page.route("**/*", guard)
        page.on("console", listen)
        page.on("pageerror", lambda error: self.troubles.append(f"error in the page: {error}"))
        page.on("dialog", lambda dialog: (self.troubles.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda other: self.troubles.append(f"opened {other.url}"))
        page.on("websocket", lambda socket: is_home(socket.url) or self.troubles.append(f"asked for {socket.url}"))

    def check(self) -> None:
        """Fail where a page did what it should not; a test may ask before its end."""
        assert not self.troubles, "the page did what it should not: " + "; ".join(self.troubles)

    def close(self) -> None:
        """A test whose server ends before it closes its pages first: what they ask last would be refused."""
        while self.contexts:
            self.contexts.pop().close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Pages]:
    """`open_page(place, phone=False, dark=False)`: a page that may do nothing wrong until the test is over."""
    pages = Pages(browser)
    yield pages
    pages.close()
    pages.check()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = [one for one in terminalreporter.stats.get("skipped", []) if "no Chromium" in str(one.longrepr)]
    if skipped:
        terminalreporter.write_sep("!", f"{len(skipped)} TESTS IN A BROWSER SKIPPED", red=True, bold=True)
        terminalreporter.write_line(MISSING, red=True)
