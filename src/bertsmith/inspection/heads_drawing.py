"""The effects of cutting heads standing still: a heat map, layers down and heads across.

In: `HeadEffects.data()`. Out: SVG.
"""

from collections.abc import Mapping
from typing import Any

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.axes import box, label, wrap
from bertsmith.evaluation.report.numbers import show_number
from bertsmith.inspection.attribution_drawing import show_signed
from bertsmith.inspection.drawing import LINE, heading, stand_alone, write_lines

LEFT, TOP, TALL = 74.0, 118.0, 34.0


def draw_heads(data: Mapping[str, Any]) -> str:
    wide = 62.0 if data["heads"] <= 12 else 46.0
    width = max(LEFT + data["heads"] * wide + 28, 560.0)
    above, below = (wrap(told, width - 48) for told in (tell_whole(data), tell_together(data) or tell_scale(data)))
    top = TOP + LINE * (len(above) - 1)
    parts = [heading(_name(data), above)]
    parts += [label(LEFT + (n + 0.5) * wide, top - 10, n, "middle", "quiet") for n in range(data["heads"])]
    parts += [label(LEFT - 12, top + (n + 0.6) * TALL, n, "end", "quiet") for n in range(data["layers"])]
    parts += [label(LEFT, top - 30, "head →", "start", "quiet"), label(LEFT - 12, top - 10, "layer ↓", "end", "quiet")]
    cut = {tuple(place) for place in data["cut"]}
    most = max((abs(effect["change"] or 0.0) for effect in data["effects"]), default=0.0) or 1.0
    found = {(effect["layer"], effect["head"]): effect for effect in data["effects"]}
    for layer in range(data["layers"]):
        for head in range(data["heads"]):
            x, y = LEFT + head * wide, top + layer * TALL
            parts.append(_draw_cell(found.get((layer, head)), (layer, head) in cut, x, y, wide, most))
    end = top + data["layers"] * TALL
    parts.append(write_lines(24, end + 28, below))
    end += LINE * len(below)
    return stand_alone("".join(parts), width, end + 31, f"change of {data['what']} without each head")


def _draw_cell(effect: Mapping[str, Any] | None, is_cut: bool, x: float, y: float, wide: float, most: float) -> str:
    if effect is None:
        style, shown = ("fill c2", "cut") if is_cut else ("track", "")
        return box(x, y, wide - 2, TALL - 2, style) + label(
            x + wide / 2 - 1, y + 21, shown, "middle", "on" if is_cut else "quiet", 11
        )
    value = effect["change"] or 0.0
    depth = 0.04 + 0.86 * abs(value) / most
    words = label(x + wide / 2 - 1, y + 21, _show(effect["change"]), "middle", "on" if depth > 0.6 else "", 11)
    hint = f"layer {effect['layer']}, head {effect['head']}: {tell_effect(effect)}"
    return box(x, y, wide - 2, TALL - 2, "fill c1" if value >= 0 else "fill c2", hint, depth) + words


def tell_whole(data: Mapping[str, Any]) -> str:
    """The score with all heads."""
    shown = "undefined" if data["value"] is None else f"{data['value']:.4f}"
    if data["low"] is None:
        return f"{data['what']}: {shown} with all heads"
    between = f"95 % interval {data['low']:.4f} to {data['high']:.4f}"
    return f"{data['what']} on {counted(data['examples'], 'example')}: {shown} with all heads ({between})"


def tell_together(data: Mapping[str, Any]) -> str:
    if data["together"] is None:
        return ""
    named = ", ".join(f"{layer}.{head}" for layer, head in data["cut"])
    return f"without {named}: {tell_effect(data['together'])}"


def tell_scale(data: Mapping[str, Any]) -> str:
    """What colours mean; where there is a test, how many heads chance would show."""
    says = "orange: it falls without the head; blue: it rises"
    count = len(data["effects"])
    by_chance = f"of {counted(count, 'head')} chance alone shows {show_number(count / 20)} with p < 0.05"
    return says if data["low"] is None else f"{says}; {by_chance}"


def tell_effect(effect: Mapping[str, Any]) -> str:
    says = _show(effect["change"])
    if effect["low"] is not None and effect["p"] is not None:
        says += f" ({show_signed(effect['low'])} to {show_signed(effect['high'])}, p {effect['p']:.3f})"
    return says if effect["changed"] is None else f"{says}, {effect['changed']:,} other answers"


def _name(data: Mapping[str, Any]) -> str:
    count = len(data["cut"])
    return f"Without {count} head{'s' * (count != 1)}" if count else "Without each head"


def _show(change: float | None) -> str:
    return "–" if change is None else show_signed(change)
