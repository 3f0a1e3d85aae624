"""What a wrong start and end cost: against torch and the reference's own loss, with filler that must cost nothing."""

import pytest
import torch
from oracle import as_batch, load_saved, make_reference, make_rows, pad
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.data.examples import SpanExample
from bertsmith.tasks.losses import Criterion, diverge
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.span import Span

LENGTHS = (9, 3, 1, 17, 4)
GOLD = torch.tensor([[2, 5], [0, 0], [0, 0], [16, 16], [1, 3]])


@pytest.fixture(scope="module")
def task(bert):
    return Span(bert.ours.tokenizer, 64, "windows", Span.settings_from((), None))


def make_scores(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (4 * torch.randn(sum(lengths), 2, generator=generator)).requires_grad_()


def make_batch(lengths: tuple[int, ...] = LENGTHS) -> Batch:
    return Batch.of([[5] * length for length in lengths])


def each_row(scores: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    """Cross entropy row by row, no padding anywhere."""
    rows = scores.split(LENGTHS)
    costs = [F.cross_entropy(row.T, gold, label_smoothing=smoothing) for row, gold in zip(rows, GOLD, strict=True)]
    return torch.stack(costs)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_equal_torch(task, smoothing):
    ours, theirs = make_scores(), make_scores()
    found = task.loss(ours, GOLD, make_batch(), Criterion(smoothing=smoothing))
    wanted = each_row(theirs, smoothing)
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_focal(task):
    scores = make_scores()
    found = task.loss(scores, GOLD, make_batch(), Criterion(focal=2.0))
    for row, gold, cost in zip(scores.split(LENGTHS), GOLD, found, strict=True):
        chances = row.softmax(dim=0)[gold, [0, 1]]
        torch.testing.assert_close(cost, (-chances.log() * (1 - chances) ** 2).mean(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("criterion", [Criterion(), Criterion(smoothing=0.1), Criterion(focal=0.5)])
def test_filler_costs_nothing(task, criterion):
    """Rows without gold, and rows without a single token, which a batch of fixed shape has at its end."""
    lengths = (*LENGTHS, 6, 0, 0)
    scores = make_scores(lengths)
    gold = torch.cat([GOLD, torch.full((3, 2), -1)])
    found = task.loss(scores, gold, make_batch(lengths), criterion)
    assert found[-3:].tolist() == [0, 0, 0]
    found.sum().backward()
    real = sum(LENGTHS)
    assert scores.grad.isfinite().all() and not scores.grad[real:].any()
    alone = scores.detach()[:real].clone().requires_grad_()
    task.loss(alone, GOLD, make_batch(), criterion).sum().backward()
    torch.testing.assert_close(scores.grad[:real], alone.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite(task, dtype):
    scores = (100 * make_scores().detach()).to(dtype).requires_grad_()
    task.loss(scores, GOLD, make_batch(), Criterion(smoothing=0.1)).sum().backward()
    assert scores.grad.isfinite().all()


def test_nothing_looks_at_a_value(task):
    """So that it can be captured and replayed on a GPU: here there are no values, only shapes."""
    batch = Batch.of([[5] * length for length in LENGTHS], device="meta")
    scores = make_scores().detach().to("meta").requires_grad_()
    found = task.loss(scores, GOLD.to("meta"), batch, Criterion(smoothing=0.1, focal=2.0))
    (found + task.diverge(scores, scores, batch)).sum().backward()
    assert found.shape == (len(LENGTHS),) and scores.grad.shape == scores.shape


def test_divergence(task):
    one, other = make_scores(), make_scores(seed=1)
    found = task.diverge(one, other, make_batch())
    rows = zip(one.split(LENGTHS), other.split(LENGTHS), strict=True)
    wanted = torch.stack([diverge(a.T, b.T).mean() for a, b in rows])
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    assert one.grad.isfinite().all()
    assert task.diverge(one, one, make_batch((*LENGTHS[:-1], 4, 0)[:5])).abs().max() == 0


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_the_reference_has_the_same_loss(task, tmp_path, family):
    model = make_reference(family, "span")
    ids, segments = make_rows(model, (17, 5, 40, 23, 3))
    gold = torch.tensor([[3, 9], [0, 0], [39, 39], [5, 22], [2, 2]])
    network = load_saved(model, tmp_path).network
    batch = as_batch(ids, segments)
    ours = task.loss(network.score(network(batch), batch, "span"), gold, batch, Criterion()).mean()
    # The reference lets padding take a share of the softmax; one row at a time there is none.
    losses = []
    for row, kinds, (start, end) in zip(ids, segments, gold, strict=True):
        given = {"token_type_ids": pad([kinds], 0, "right")} if getattr(model.config, "type_vocab_size", 0) else {}
        losses.append(model(row[None], start_positions=start[None], end_positions=end[None], **given).loss)
    torch.testing.assert_close(ours, torch.stack(losses).mean(), atol=1e-5, rtol=1e-5)


def test_a_small_model_learns_to_answer(bert, tmp_path):
    """Rows, loss and answers agree on what is where: what was learned by heart comes back, no answer too."""
    contexts = [
        "the quick fox; a lazy dog",
        "it is a small city (not good)",
        "we play " * 30 + "paris " + "he walks " * 9,
    ]
    texts = [("fox", "lazy dog", None), ("a small city", "good", None), ("paris", None)]
    asked = ["who", "what", "where"]
    examples = [
        SpanExample(f"{question} ?", context, () if text is None else ((text, context.index(text)),))
        for context, golds in zip(contexts, texts, strict=True)
        for question, text in zip(asked, golds, strict=False)
    ]
    task = Span(bert.ours.tokenizer, 64, "windows", Span.settle(examples, {}))
    rows = task.rows(examples)
    flat = [row for some in rows for row in some]
    model = make_reference("bert", "span", vocab_size=bert.ours.tokenizer.size)
    model.init_weights()  # as before training, where the sharp ones of the other tests would not learn
    network = load_saved(model, tmp_path).network.requires_grad_()
    batch, gold = Batch.of([row.ids for row in flat], [row.segments for row in flat]), torch.from_numpy(task.gold(flat))
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(80):
        cost = task.loss(task.read(network, batch, None), gold, batch, Criterion()).mean()
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
    results = Predictor(network, torch.device("cpu"), 1024).predict(task, examples)
    assert [result[0]["answer"] for result in results] == [e.answers[0][0] if e.answers else "" for e in examples]
    assert task.score(results, examples)["f1"].point == 1
