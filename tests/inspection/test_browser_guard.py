"""The guard of tests/browser.py sees what a page should not do; else every test in a browser would pass for nothing."""

import time
from pathlib import Path
from typing import Any

import pytest
from browser import Pages

OFFENCES = {
    "error in the page": "<script>throw new Error('x')</script>",
    "console: boo": "<script>console.error('boo')</script>",
    "asked for http://example.com/a.png": "<img src=http://example.com/a.png>",
    "asked for ws://example.com/": "<script>new WebSocket('ws://example.com/')</script>",
    "asked for file://": "<img src=other.png>",
    "a dialog: 1": "<script>alert(1)</script>",
}


@pytest.mark.parametrize("says", OFFENCES)
def test_an_offence_is_seen(browser: Any, tmp_path: Path, says: str) -> None:
    (tmp_path / "a.html").write_text(f"<!doctype html><title>page</title>{OFFENCES[says]}")
    pages = Pages(browser)
    page = pages(tmp_path / "a.html")
    deadline = time.monotonic() + 10
    while not any(says in trouble for trouble in pages.troubles) and time.monotonic() < deadline:
        page.wait_for_timeout(20)
    with pytest.raises(AssertionError, match=says):
        pages.check()
    pages.close()


def test_a_good_page_is_let_be(open_page: Any, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<!doctype html><title>page</title><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
        "<script>console.log('fine'); console.error('expected: this')</script>"
    )
    assert open_page(tmp_path / "a.html", allow=("expected",)).title() == "page"
