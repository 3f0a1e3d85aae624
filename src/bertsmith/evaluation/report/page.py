"""The report as one HTML page that needs nothing else: no network, no script, no second file."""

from importlib.resources import files

from bertsmith.evaluation.report import sections
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import escape, isolate, tag
from bertsmith.evaluation.report.pretraining_curves import draw_course
from bertsmith.evaluation.report.wording import name_run, name_task

PARTS = (
    ("members", "Members", sections.show_members),
    ("scores", "Scores", sections.show_scores),
    ("caveats", "Before you quote a number", sections.show_caveats),
    ("training", "Training", draw_course),
    ("labels", "Each label", sections.show_labels),
    ("thresholds", "Thresholds", sections.show_thresholds),
    ("confusion", "Confusion matrix", sections.show_confusion),
    ("reliability", "Reliability", sections.show_reliability),
    ("errors", "Worst errors", sections.show_errors),
    ("lengths", "Lengths and cutting", sections.show_lengths),
    ("data", "Data", sections.show_data),
    ("speed", "Speed", sections.show_speed),
    ("settings", "Settings", sections.show_settings),
    ("again", "Run it again", sections.show_command),
)
# Texts of the data stand in this page; should one of them ever slip through, it still cannot load or run anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def make_page(facts: RunFacts) -> str:
    filled = [(key, heading, show(facts)) for key, heading, show in PARTS]
    filled = [(key, heading, inside) for key, heading, inside in filled if inside]
    body = "".join(
        tag("section", tag("h2", heading, {"id": key}) + "\n" + inside) + "\n" for key, heading, inside in filled
    )
    links = "".join(tag("li", tag("a", heading, {"href": f"#{key}"})) for key, heading, _ in filled)
    nav = tag("nav", tag("ul", links), {"aria-label": "Parts of this report"}) + "\n" if links else ""
    made = "Written by bertsmith" + (f" {escape(facts.version)}" if facts.version else "")
    made += f", {escape(facts.date)}" if facts.date else ""
    return (
        f'<!doctype html>\n<html lang="en">\n{_head(facts)}\n<body>\n'
        f"{tag('header', _top(facts))}\n{nav}{tag('main', body)}\n"
        f"{tag('footer', tag('p', made + '.'))}\n</body>\n</html>\n"
    )


def _head(facts: RunFacts) -> str:
    style = files("bertsmith.evaluation.report").joinpath("report.css").read_text(encoding="utf-8")
    return (
        f'<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(name_run(facts))}</title>\n<style>\n{style}</style>\n</head>"
    )


def _top(facts: RunFacts) -> str:
    known = [name_task(facts)] if facts.title else []
    known += [f"from {isolate(facts.base)}"] if facts.base else []
    known += [escape(facts.date)] if facts.date else []
    line = tag("p", " · ".join(known), {"class": "quiet"}) if known else ""
    return tag("h1", isolate(name_run(facts))) + line + sections.show_tiles(facts)
