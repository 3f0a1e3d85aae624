"""Whether the attention page is light: its size, how long it takes to open, and how soon it answers a pointer.

    python benchmarks/pictures.py --out benchmarks/results/pictures.json

A BERT with 12 layers and 12 heads is made on the spot, with random weights and queries and keys of many sizes, so that
its heads look at one word or at all: uniform attention would make a file that is smaller than any real one. A real
Chromium opens the file from disk. `open_ms` is from the start of the navigation until the first lines are drawn;
`hover_ms` from the pointer's event until the frame that answers it is done, the wait for the frame counted too.
"""

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from origins import find_model
from runs import write

TOKENS = (128, 512)
ROUNDS, WORDS = 5, 20

# Before the page's own scripts: notes when the picture says that its numbers are there and two frames have gone by.
NOTE_OPENING = """
new MutationObserver((_, watcher) => {
  if (!document.querySelector('[data-ready]')) return;
  watcher.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.openedAt = performance.now(); }));
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-ready'] });
"""

# The pointer on each of these heights; the time until a task can run after the frame.
HOVER = """async ([x, heights]) => {
  const stage = document.querySelector('.stage'), box = stage.getBoundingClientRect(), found = [];
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (const y of heights) {
    await frame();
    const before = document.querySelector('.readout').textContent, start = performance.now();
    const isOld = () => document.querySelector('.readout').textContent === before;
    const place = { clientX: box.left + x * box.width, clientY: box.top + y };
    stage.dispatchEvent(new PointerEvent('pointermove', place));
    do await frame(); while (isOld() && performance.now() - start < 1000);
    found.push(performance.now() - start);
  }
  return found;
}"""

# Until all small matrices are drawn: no part of the canvas has the colour of a head that is missing.
WHOLE = """async () => {
  const start = performance.now(), canvas = document.querySelector('.stage canvas');
  document.querySelector('[data-key=model]').click();
  let quiet = 0, last = '';
  while (quiet < 3) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const now = canvas.toDataURL().slice(-4000);
    quiet = now === last ? quiet + 1 : 0;
    last = now;
  }
  return performance.now() - start;
}"""


def make_model(folder: Path, tokenizer: Path) -> Path:
    """Twelve layers of twelve heads; each head's queries and keys have a size of their own."""
    import torch
    import transformers

    size = len((tokenizer / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = transformers.BertConfig(vocab_size=size, hidden_size=384, intermediate_size=768)
    torch.manual_seed(0)
    model = transformers.BertModel(config)
    with torch.no_grad():
        for layer in model.encoder.layer:
            factors = (1 + 4 * torch.rand(12)).repeat_interleave(32)[:, None]
            layer.attention.self.query.weight *= factors
            layer.attention.self.key.weight *= factors
    model.save_pretrained(folder)
    # Its tokenizer.json would cut at 128 tokens, as its config says.
    transformers.BertTokenizer(str(tokenizer / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    return folder


def make_text(vocabulary: Path, tokens: int) -> str:
    """Words that are one piece each, two fewer than tokens: the special ones come on top."""
    words = [word for word in vocabulary.read_text(encoding="utf-8").splitlines() if word.isascii() and word.isalpha()]
    return " ".join(random.Random(tokens).choices([word for word in words if len(word) > 3], k=tokens - 2))


def measure(browser: Any, file: Path) -> dict[str, float]:
    opened, page = [], None
    for _ in range(ROUNDS):
        if page is not None:
            page.close()
        page = browser.new_page(viewport={"width": 1180, "height": 820})
        page.add_init_script(NOTE_OPENING)
        page.goto(file.as_uri())
        page.wait_for_function("() => window.openedAt", timeout=60_000)
        opened.append(page.evaluate("window.openedAt"))
    assert page is not None
    heights = [48 + place * 26 for place in range(WORDS)]  # each on another word than the one before
    found = {"open_ms": round(statistics.median(opened), 1)}
    for view, x in (("lines", 0.28), ("matrix", 0.5), ("token", 0.6)):
        page.locator(f"[data-key={view}]").click()
        page.wait_for_timeout(1500)
        times = page.evaluate(HOVER, [x, heights])
        found |= {f"{view}_hover_ms": round(statistics.median(times), 1), f"{view}_hover_most_ms": round(max(times), 1)}
    found["all_heads_ms"] = round(page.evaluate(WHOLE), 1)
    page.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default=os.environ.get("BERTSMITH_CHROMIUM") or "chromium")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    options = parser.parse_args()
    options.device, options.jobs = "cpu", 1
    program = shutil.which(options.chromium)
    if program is None:
        raise SystemExit(f"{options.chromium} is no program; name a Chromium with --chromium.")
    from playwright.sync_api import sync_playwright

    import bertsmith

    load = os.getloadavg()[0]  # what else the machine was doing

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        model = bertsmith.load(make_model(Path(folder, "model"), find_model()), threads=options.threads)
        runs = []
        for tokens in TOKENS:
            text = make_text(find_model() / "vocab.txt", tokens)
            picture = bertsmith.inspect.attention(model, text)
            file = picture.save(Path(folder, f"{tokens}.html"))
            about = {"tokens": len(picture.pieces), "layers": picture.layers, "heads": picture.head_count,
                     "entropy_bits": round(float(picture.entropy.mean()), 2), "bytes": file.stat().st_size}  # fmt: skip
            runs.append({**about, **measure(browser, file)})
            print(runs[-1], flush=True)
        chromium = browser.version
        browser.close()
    write(options, {"browser": f"Chromium {chromium}", "load_before": round(load, 1), "runs": runs})
    return 0


if __name__ == "__main__":
    sys.exit(main())
