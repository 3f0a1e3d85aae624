"""A live server for tests of its page, with a tiny model for every head, and a person at the page."""

from whole.tiny import make_encoder

import bertsmith

EVIL = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'{{7*7}}<svg onload=window.hacked=1>'
PATIENCE = 20_000  # milliseconds that a machine with much else to do has until something is seen
TABS = ["fill", "answer", "tag", "classify", "pair", "search", "senses", "attention", "tokens"]
KITCHEN = ["the song was very fine", "ann lives in oslo", "the river runs through the town", "a plot so poor"]


def make_folders(heads, place):
    """Models by id: one that reads 512 tokens, and one whose labels are an attack."""
    labels = {0: EVIL, 1: "good"}
    found = {name: heads[name] for name in ("fill", "follows", "score", "tag", "answer")}
    return {
        "long": make_encoder(place / "long", limit=512),
        **found,
        "nli": heads["classify"],
        "evil": make_encoder(place / "evil", "ForSequenceClassification", num_labels=2, id2label=labels),
    }


def make_index(folder, model, place):
    for number, text in enumerate(KITCHEN):
        (folder / f"{number}.txt").write_text(text)
    return bertsmith.index(folder, model, place=place)


def meet(page):
    """Somebody at a page that was opened."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return Person(page, expect)


class Person:
    """Somebody at the page: finds things by what they are called, and waits as people do."""

    def __init__(self, page, expect):
        self.page, self.expect = page, expect

    def open(self, tab):
        self.page.get_by_role("tab", name=tab, exact=True).click()

    @property
    def panel(self):
        return self.page.locator("[role=tabpanel]:visible")

    def box(self, label):
        return self.panel.get_by_label(label, exact=True)

    def way(self, name):
        self.panel.get_by_role("radio", name=name, exact=True).check(force=True)

    @property
    def result(self):
        return self.panel.locator(".result")

    def sees(self, selector, texts):
        """The texts of what is selected in the result, when they have become these."""
        self.expect(self.result.locator(selector)).to_have_text(texts)

    def sees_problem(self, text):
        self.expect(self.panel.locator(".problem").first).to_contain_text(text)

    def fits(self):
        """Nothing makes the page wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    def is_unharmed(self):
        """No text became markup."""
        return self.page.evaluate(
            "window.hacked === undefined && "
            "!document.querySelector('#main script, #main iframe, #main [onerror], #main [onload]')"
        )
