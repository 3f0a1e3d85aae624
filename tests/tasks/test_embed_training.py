"""Learning vectors: the losses of sentence-transformers, what is no negative, cut vectors, scores by the slow way."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer import losses as theirs
from tasks.made import WORDS, bert_pieces, open_both, wordpiece_files
from torch.nn import functional as F

from bertsmith.data.examples import PairExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.embed_losses import contrast, nest, order
from bertsmith.tasks.embed_scores import score_numbers, score_pairs
from bertsmith.tasks.embed_training import EmbedPairs
from bertsmith.tasks.losses import Criterion
from bertsmith.training.recorded import Recording, Room
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

WORD_LIST = WORDS.split()
FILLER = -100


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("embed"), "bert", "mask", wordpiece_files(bert_pieces()))


def make_examples(count, negatives=0, seed=0, number=False):
    """All texts are different ones."""
    chance = random.Random(seed)
    texts = (" ".join(chance.choices(WORD_LIST, k=chance.randint(1, 9))) + f" {i}" for i in range(10**6))
    return [PairExample(next(texts), next(texts), tuple(next(texts) for _ in range(negatives)),
                        chance.randint(0, 5) if number else None, f"row {i + 1}") for i in range(count)]  # fmt: skip


def make_task(both, examples, **choices):
    made = EmbedPairs.settle(examples, {"source": both.ours.folder, **choices})
    return EmbedPairs(both.ours.tokenizer, 64, made["truncate"], made)


def lay(task, examples, order=None, filler=0, seed=0):
    """Random vectors for all rows and their gold, in another order and with filler behind them."""
    rows = [row for some in task.rows(examples) for row in some]
    vectors = torch.randn(len(rows), 24, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).float()
    gold = torch.from_numpy(task.gold(rows))
    if order is not None:
        vectors, gold = vectors[order], gold[order]
    empty = torch.full((filler, gold.shape[1]), float("nan") if gold.is_floating_point() else FILLER)
    nothing = torch.full((filler, 24), -torch.inf)
    return torch.cat([vectors, nothing]).requires_grad_(), torch.cat([gold, empty.to(gold.dtype)])


def mean_cost(task, vectors, gold, count):
    return task.loss(vectors, gold, None, Criterion()).sum() / count


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.integers(0, 3), st.integers(0, 5), st.integers(0, 100))
def test_in_batch_negatives_cost_what_sentence_transformers_says(both, count, negatives, filler, seed):
    """In whatever order the rows stand; also the slope, of which filler has none."""
    examples = make_examples(count, negatives, seed)
    task = make_task(both, examples)
    shuffled = torch.from_numpy(np.random.default_rng(seed).permutation(count * (2 + negatives)))
    vectors, gold = lay(task, examples, shuffled, filler, seed)
    ours = mean_cost(task, vectors, gold, count)
    (slope,) = torch.autograd.grad(ours, vectors)
    plain, _ = lay(task, examples, None, 0, seed)
    columns = [plain[place :: 2 + negatives] for place in range(2 + negatives)]
    wanted = theirs.MultipleNegativesRankingLoss(None).compute_loss_from_embeddings(columns, None)
    (back,) = torch.autograd.grad(wanted, plain)
    assert torch.allclose(ours, wanted, atol=1e-5)
    assert torch.allclose(slope[: len(shuffled)], back[shuffled], atol=1e-5) and not slope[len(shuffled) :].any()


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(0, 5), st.integers(0, 100))
def test_pairs_with_numbers_cost_what_sentence_transformers_says(both, count, filler, seed):
    examples = [replace(e, number=i % 4 if seed % 2 else e.number)
                for i, e in enumerate(make_examples(count, seed=seed, number=True))]  # fmt: skip
    examples[0], examples[1] = replace(examples[0], number=0), replace(examples[1], number=5)
    task = make_task(both, examples)
    shuffled = torch.from_numpy(np.random.default_rng(seed).permutation(2 * count))
    vectors, gold = lay(task, examples, shuffled, filler, seed)
    ours = mean_cost(task, vectors, gold, count)
    (slope,) = torch.autograd.grad(ours, vectors)
    plain, _ = lay(task, examples, None, 0, seed)
    numbers = torch.tensor([float(e.number) for e in examples])
    wanted = theirs.CoSENTLoss(None).compute_loss_from_embeddings([plain[::2], plain[1::2]], numbers)
    (back,) = torch.autograd.grad(wanted, plain)
    assert torch.allclose(ours, wanted, atol=1e-4)
    assert torch.allclose(slope[: len(shuffled)], back[shuffled], atol=1e-4) and not slope[len(shuffled) :].any()


def test_what_belongs_to_a_text_as_well_is_no_negative(both):
    """The same pair text again, another pair of the same text, and the text itself."""
    examples = [PairExample("a", "b"), PairExample("c", "b"), PairExample("a", "d"), PairExample("e", "a", ("b", "f"))]
    task = make_task(both, examples)
    vectors, gold = lay(task, examples)
    cost = task.loss(vectors, gold, None, Criterion())
    names = [text for e in examples for text in (e.text, e.pair, *e.negatives)]
    units = F.normalize(vectors, dim=-1)
    wanted = {0: (1, ["f"]), 2: (3, ["d", "a", "f"]), 4: (5, ["f"]), 6: (7, ["b", "b", "d", "b", "f"])}
    candidates = {1: "b", 3: "b", 5: "d", 7: "a", 8: "b", 9: "f"}
    for anchor, (own, negatives) in wanted.items():
        others = [i for i, text in candidates.items() if i != own and text in negatives]
        assert sorted(negatives) == sorted(names[i] for i in others)
        near = 20 * units[anchor] @ units[[own, *others]].T
        assert cost[anchor].item() == pytest.approx(F.cross_entropy(near[None], torch.tensor([0])).item(), abs=1e-5)
    assert (cost > 0).sum() == 4


@pytest.mark.parametrize("number", [False, True])
def test_vectors_that_may_be_cut_cost_the_mean_of_the_cut_ones(both, number):
    examples = make_examples(6, 0 if number else 1, number=number)
    task = make_task(both, examples)
    vectors, gold = lay(task, examples)
    loss = order if number else contrast
    each = [nest(loss, vectors[:, :size], gold, 20.0, []).sum().item() for size in (24, 8, 3)]
    whole = nest(loss, vectors, gold, 20.0, [24, 8, 3]).sum().item()
    assert whole == pytest.approx(np.mean(each), rel=1e-6)
    width = both.ours.checkpoint.config.width
    assert make_task(both, examples, dims="8,4").settings["dims"] == [width, 8, 4]
    assert make_task(both, examples, dims=f"4,{width}").settings["dims"] == [width, 4]


def test_one_pass_holds_a_step_and_a_step_depends_on_its_number_only(both):
    examples = make_examples(11, 1)
    task = make_task(both, examples)
    rows = task.rows(examples)
    study = TaskStudy(task, rows, Training(batch=4, seed=3))
    again = TaskStudy(task, rows, Training(batch=4, seed=3))
    for step in (5, 1, 3, 0):
        (work,) = study.works(step, 0, 1, budget=1)
        assert len(work.lengths) == 3 * study.size(step) and work.counts["loss"] == study.size(step)
        (other,) = again.works(step, 0, 1, budget=10**6)
        assert (work.ids == other.ids).all() and (work.given["gold"].values == other.given["gold"].values).all()
    with pytest.raises(BertsmithError, match=r"compares all examples of a step .* run it in one process"):
        study.works(0, 0, 2, 100)
    with pytest.raises(BertsmithError, match="r_drop has no meaning for the task embed"):
        TaskStudy(task, rows, Training(r_drop=1.0))


@pytest.mark.parametrize("number", [False, True])
def test_a_recorded_pass_costs_the_same(both, number):
    """Fixed rooms are filled up behind the last row."""
    examples = make_examples(7, number=number)
    task = make_task(both, examples)
    (work,) = TaskStudy(task, task.rows(examples), Training(batch=7)).works(0, 0, 1, 10**6)
    recording = Recording(Room.of(work), work, torch.device("cpu"))
    recording.lay(work, recording.flat.numpy())
    plain = torch.from_numpy(work.given["gold"].values)
    gold = recording.given()["gold"]
    if number:  # measured gold goes to the device on its own
        gold = torch.full_like(gold, float("nan"))
        gold[: len(plain)] = plain
    assert len(gold) > len(plain)
    vectors = torch.randn(len(gold), 16)
    cost = task.loss(vectors, gold, None, Criterion())
    assert torch.allclose(cost[: len(plain)], task.loss(vectors[: len(plain)], plain, None, Criterion()), atol=1e-5)
    assert not cost[len(plain) :].any()


def test_a_step_moves_the_encoder(both):
    from bertsmith.models.checkpoint import load_checkpoint

    examples = make_examples(5, 1)
    task = make_task(both, examples)
    study = TaskStudy(task, task.rows(examples), Training(batch=5))
    network = load_checkpoint(both.ours.folder).network.eval().requires_grad_(True)
    batch, arrays = study.works(0, 0, 1, 10**6)[0].on(torch.device("cpu"))
    study.losses(network, batch, arrays)["loss"].backward()
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)
    assert network.embed.tokens.weight.grad.abs().sum() > 0


def brute_force(vectors, examples):
    """Ranks of each text's pair among all candidates, for texts that are all different."""
    candidates = np.concatenate([v[1:] for v in vectors])
    owners = np.repeat(np.arange(len(vectors)), [len(v) - 1 for v in vectors])
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    ranks = []
    for i, own in enumerate(vectors):
        near = F.cosine_similarity(torch.from_numpy(own[:1]), torch.from_numpy(candidates)).numpy()
        ranks.append(1 + (near > near[first[i]]).sum())
    return np.array(ranks)


@pytest.mark.parametrize("count", [1, 7, 600])
def test_ranks_in_blocks_are_those_of_the_slow_way(count):
    examples = make_examples(count, 1)
    chance = np.random.default_rng(0)
    vectors = [base + 0.7 * chance.normal(size=(3, 12)) for base in chance.normal(size=(count, 1, 12))]
    ranks = brute_force(vectors, examples)
    found = {name: measure.point for name, measure in score_pairs(vectors, examples).items()}
    seen = ranks <= 10
    assert found["mrr@10"] == pytest.approx((seen / ranks).mean())
    assert found["ndcg@10"] == pytest.approx((seen / np.log2(ranks + 1)).mean())
    assert found["accuracy@1"] == pytest.approx((ranks == 1).mean())
    assert found["recall@10"] == pytest.approx(seen.mean())


def test_a_text_is_not_its_own_nearest():
    """Pairs both ways round, and a chain: each text is some other one's pair, and its own vector the nearest to it."""
    chance = np.random.default_rng(0)
    near = {}
    for group in ("ab", "cd", "efg"):
        base = chance.normal(size=12)
        near |= {text: base + 0.01 * chance.normal(size=12) for text in group}
    examples = [PairExample(*pair) for pair in ("ab", "ba", "cd", "dc", "ef", "fg")]
    vectors = [np.stack([near[e.text], near[e.pair]]) for e in examples]
    found = {name: measure.point for name, measure in score_pairs(vectors, examples).items()}
    right = []
    for e in examples:
        others = sorted({other.pair for other in examples} - {e.text})
        cosines = [near[e.text] @ near[text] / np.linalg.norm(near[text]) for text in others]
        right.append(others[int(np.argmax(cosines))] == e.pair)
    assert found["accuracy@1"] == np.mean(right) >= 5 / 6
    same = [*examples, PairExample("h", "h")]  # what is given as its own pair is right
    vectors.append(np.stack([near["a"] * -1] * 2))
    assert score_pairs(vectors, same)["accuracy@1"].point == (sum(right) + 1) / 7


def test_correlations_are_scipys():
    from scipy.stats import pearsonr, spearmanr

    examples = make_examples(50, number=True)
    vectors = np.random.default_rng(1).normal(size=(50, 2, 8))
    cosines = F.cosine_similarity(*torch.from_numpy(vectors).unbind(1)).numpy()
    numbers = [e.number for e in examples]
    found = score_numbers(list(vectors), examples)
    assert found["spearman"].point == pytest.approx(spearmanr(cosines, numbers)[0])
    assert found["pearson"].point == pytest.approx(pearsonr(cosines, numbers)[0])


def test_prompts_tell_queries_from_passages(both):
    example = PairExample("Dog", "Cat", ("FOX",))
    task = make_task(both, [example, example, *make_examples(2)])
    own = {"prompts": {"query": "the ", "passage": "a "}, "lower": True}
    read = [both.ours.tokenizer.decode(row.ids) for row in task.tuned(own).rows([example])[0]]
    assert read == ["the dog", "a cat", "a fox"]
    default = {"prompts": {"x": "it "}, "default_prompt": "x"}
    read = [both.ours.tokenizer.decode(row.ids) for row in task.tuned(default).rows([example])[0]]
    assert [text.split()[0] for text in read] == ["it"] * 3


def test_long_texts(both):
    example = PairExample("the " * 90, "a dog", where="train.csv, row 3")
    (rows,) = make_task(both, make_examples(2)).rows([example])
    assert len(rows[0].ids) == 64 and rows[0].dropped > 0
    with pytest.raises(BertsmithError, match=r"train.csv, row 3: a text has \d+ tokens but at most 64 fit"):
        make_task(both, make_examples(2), truncate="error").rows([example])
    with pytest.raises(BertsmithError, match="embed has no meaning for truncate='windows'"):
        make_task(both, make_examples(2), truncate="windows")


@pytest.mark.parametrize(
    ("examples", "choices", "why"),
    [
        ([PairExample("a", "b")] * 3, {}, "train has one pair only"),
        ([PairExample("a", "b", number=2.0)] * 3, {}, "all 3 numbers of train are 2, so there is nothing to learn"),
        (make_examples(3), {"dims": "8,x"}, "give whole numbers with commas between them"),
        (make_examples(3), {"dims": "8,0"}, "give whole numbers with commas between them"),
        (make_examples(3), {"dims": "8,-4"}, "give whole numbers with commas between them"),
        (make_examples(3), {"dims": "8,8"}, "names a number twice"),
        (make_examples(3), {"dims": "8000,8"}, "dims names 8,000, but the vectors of this model have"),
    ],
)
def test_what_cannot_be_learnt(both, examples, choices, why):
    with pytest.raises(BertsmithError, match=why):
        make_task(both, examples, **choices)


def test_one_pair_with_negatives_can_be_learnt(both):
    assert make_task(both, [PairExample("a", "b", ("c",))]).settings["loss"] == "contrast"


def test_vectors_are_cut_and_have_length_1_again(both):
    texts = ["the dog", "a cat in paris"]
    whole = both.ours.embed(texts, normalize=False)
    assert np.allclose(both.ours.embed(texts, dims=5, normalize=False), np.asarray(whole)[:, :5])
    cut = np.asarray(both.ours.embed(texts, dims=5, normalize=True))
    assert np.allclose(cut, F.normalize(torch.from_numpy(np.asarray(whole)[:, :5].copy()), dim=-1).numpy(), atol=1e-6)
    assert both.ours.embed([], dims=5).shape == (0, 5)
    for dims, why in ((0, "at least 1"), (1000, "have 32 numbers|but the vectors"), ("x", "whole number")):
        with pytest.raises(BertsmithError, match=why):
            both.ours.embed(texts, dims=dims)


def test_similar_goes_by_the_cosine(both):
    others = ["the dog", "a cat", "paris is a city"]
    result = both.ours.similar("the fox", others)
    vectors = torch.from_numpy(np.array(both.ours.embed(["the fox", *others])))
    wanted = F.cosine_similarity(vectors[:1], vectors[1:])
    assert [a["index"] for a in result] == wanted.argsort(descending=True).tolist()
    assert all(a["score"] == pytest.approx(wanted[a["index"]].item(), abs=1e-5) for a in result)
    assert [a["text"] for a in result] == [others[a["index"]] for a in result]
    several = both.ours.similar(["the fox", "a dog"], others, top_k=2)
    assert [len(one) for one in several] == [2, 2] and several[0].answers[0]["index"] == result[0]["index"]
    with pytest.raises(BertsmithError, match="there are no texts to compare with"):
        both.ours.similar("x", [])
