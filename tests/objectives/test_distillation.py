"""A student learns from a teacher by the published formulas, written out here."""

import pytest
import torch
from objectives.asking import SPECIALS, VOCABULARY, ask, count_ordinary, make_batch, make_rows, padded, run
from oracle import load_saved, make_reference

from bertsmith.errors import BertsmithError
from bertsmith.objectives.distillation import Distillation
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Vocabulary
from bertsmith.objectives.relations import AttentionRelations


@pytest.fixture
def teacher(tmp_path):
    reference = make_reference("bert", "mask")
    return reference, load_saved(reference, tmp_path / "teacher").network


@pytest.fixture
def student(tmp_path):
    reference = make_reference("distilbert", "mask", 1)
    return reference, load_saved(reference, tmp_path / "student").network.requires_grad_(True)


def read(reference, batch, **more):
    given = padded(batch)
    if reference.config.model_type == "distilbert":
        del given["token_type_ids"]
    return reference(**given, output_hidden_states=True, **more), given["attention_mask"].bool()


@pytest.mark.parametrize("over, chunk", [("tokens", 10**6), ("places", 10**6), ("tokens", 13)])
def test_the_losses_are_those_of_distilbert(teacher, student, over, chunk):
    """As its first release computes them (arXiv 1910.01108), special tokens left out."""
    objective = Distillation(MaskedTokens(VOCABULARY, chunk=chunk), teacher[1], over=over)
    rows = make_rows()
    asked = ask(objective, rows)
    (ours, mask), (theirs, _) = read(student[0], asked.batch), read(teacher[0], asked.batch)
    ordinary = ~torch.isin(torch.tensor([id for row in rows for id in row]), torch.tensor(SPECIALS))
    at, gold = asked.given["at"], asked.given["gold"]
    compared = at if over == "places" else ordinary.nonzero()[:, 0]
    s, t = (x.logits[mask] for x in (ours, theirs))
    loss = torch.nn.KLDivLoss(reduction="batchmean")
    soft = loss((s[compared] / 2).log_softmax(-1), (t[compared] / 2).softmax(-1)) * 2**2
    hard = torch.nn.functional.cross_entropy(s[at], gold)
    s, t = (x.hidden_states[-1][mask][ordinary] for x in (ours, theirs))
    angle = torch.nn.CosineEmbeddingLoss()(s, t, torch.ones(len(s)))
    means, total = run(objective, student[1], asked)
    found = {name: mean.item() for name, mean in means.items()}
    assert found == pytest.approx({"distilled": soft.item(), "masked": hard.item(), "cosine": angle.item()}, rel=1e-5)
    assert total.item() == pytest.approx((5 * soft + 2 * hard + angle).item(), rel=1e-5)
    counts = objective.losses(student[1], student[1](asked.batch), asked.batch, asked.given)
    assert {name: count.item() for name, (_, count) in counts.items()} == objective.expect(count_ordinary(rows), 5, 0.0)
    total.backward()
    assert all(p.grad is None for p in teacher[1].parameters())
    assert all(p.grad is not None for p in student[1].parameters())


def test_a_teacher_computes_no_more_than_is_compared(teacher, student, monkeypatch):
    monkeypatch.setattr("bertsmith.layers.onednn.is_quicker", lambda: False)  # which wants a rounded number of rows
    masking = MaskedTokens(VOCABULARY)
    objective = Distillation(masking, teacher[1], cosine=0.0, over="places")
    everywhere = Distillation(masking, teacher[1], over="places")  # the angle needs all states
    asked = ask(objective, make_rows())
    rows = []
    hooks = [block.feed.register_forward_hook(lambda _, given, __: rows.append(len(given[0])))
             for block in teacher[1].order]  # fmt: skip
    found = objective.losses(student[1], objective.read(student[1], asked), asked.batch, asked.given)
    for hook in hooks:
        hook.remove()
    assert rows == [len(asked.batch.ids)] * (len(teacher[1].order) - 1) + [len(asked.given["at"])]
    whole = everywhere.losses(student[1], everywhere.read(student[1], asked), asked.batch, asked.given)
    assert set(found) == {"distilled", "masked"} and set(whole) == {"distilled", "masked", "cosine"}
    for name, (total, count) in found.items():
        assert total.item() == pytest.approx(whole[name][0].item(), rel=1e-5) and count == whole[name][1]


def test_a_student_that_is_its_teacher_has_nothing_to_learn(teacher, tmp_path):
    network = load_saved(teacher[0], tmp_path / "again").network
    means, _ = run(objective := Distillation(MaskedTokens(VOCABULARY), teacher[1], hard=0.0), network,
                   ask(objective, make_rows()))  # fmt: skip
    assert set(means) == {"distilled", "cosine"} and all(abs(mean.item()) < 1e-5 for mean in means.values())


def test_a_teacher_that_does_not_fit_is_refused(teacher, tmp_path):
    masking = MaskedTokens(VOCABULARY)
    narrow = load_saved(make_reference("bert", "mask", hidden_size=24), tmp_path / "narrow").network
    bare = load_saved(make_reference("bert", ""), tmp_path / "bare").network
    with pytest.raises(BertsmithError, match=r"48 wide and the student's 24.*set cosine to 0"):
        run(objective := Distillation(masking, teacher[1]), narrow, ask(objective, make_rows()))
    with pytest.raises(BertsmithError, match="no head for masked tokens"):
        Distillation(masking, bare)
    with pytest.raises(BertsmithError, match="97 tokens and the student 98"):
        Distillation(MaskedTokens(Vocabulary(98, 4, SPECIALS)), teacher[1])
    with pytest.raises(BertsmithError, match="temperature is 0"):
        Distillation(masking, teacher[1], temperature=0)


def capture(reference, batch, layer, heads):
    """The reference's queries, keys and values of a layer, row by row, cut into relation heads."""
    found = {}
    block = reference.base_model.encoder.layer[layer].attention.self
    hooks = [getattr(block, name).register_forward_hook(lambda m, i, out, name=name: found.update({name: out}))
             for name in ("query", "key", "value")]  # fmt: skip
    _, mask = read(reference, batch)
    for hook in hooks:
        hook.remove()
    return [[row.unflatten(-1, (heads, -1)).transpose(0, 1) for row in batch.split(x[mask])] for x in found.values()]


def textbook_relations(teachers, students, rows):
    """MiniLMv2 (arXiv 2012.15828, equations 5 to 7): the divergence of each token's relations, the mean over tokens."""
    found = []
    for theirs, ours in zip(teachers, students, strict=True):
        total = 0.0
        for t, s, row in zip(theirs, ours, rows, strict=True):
            wanted, mine = ((x @ x.transpose(1, 2) / x.shape[-1] ** 0.5).softmax(-1) for x in (t, s))
            apart = (wanted * (wanted.log() - mine.log())).sum(-1).mean(0)
            total = total + sum(apart[i] for i, id in enumerate(row) if id not in SPECIALS)
        found.append(total / count_ordinary(rows))
    return found


@pytest.mark.parametrize("layer, heads", [(0, 0), (2, 6)])
def test_relations_are_those_of_minilm(teacher, tmp_path, layer, heads):
    """With a narrower and shallower student."""
    reference = make_reference("bert", "", 1, hidden_size=24, num_attention_heads=2, num_hidden_layers=2)
    student = load_saved(reference, tmp_path / "small").network.requires_grad_(True)
    objective = AttentionRelations(VOCABULARY, teacher[1], student, heads, layer)
    rows = make_rows()
    asked = ask(objective, rows)
    assert torch.equal(asked.batch.ids, make_batch(rows).ids)
    means, total = run(objective, student, asked)
    heads, layer = heads or 4, layer or 3
    taught = capture(teacher[0], asked.batch, layer - 1, heads)
    wanted = textbook_relations(taught, capture(reference, asked.batch, 1, heads), rows)
    assert [mean.item() for mean in means.values()] == pytest.approx([x.item() for x in wanted], rel=1e-4)
    assert list(means) == ["queries", "keys", "values"]
    total.backward()
    assert all(p.grad is None for p in teacher[1].parameters())
    below = [p for name, p in student.named_parameters() if name.startswith(("embed", "blocks.0"))]
    assert all(p.grad is not None for p in below)


@pytest.mark.parametrize("family", ["albert", "modernbert"])
def test_relations_of_a_network_with_itself_are_none_apart(family, tmp_path):
    reference = make_reference(family, "")
    one, other = (load_saved(reference, tmp_path / name).network for name in ("one", "other"))
    means, _ = run(objective := AttentionRelations(VOCABULARY, one, other), other, ask(objective, make_rows()))
    assert all(abs(mean.item()) < 1e-6 for mean in means.values())


def test_relations_that_cannot_be_are_refused(teacher, tmp_path):
    student = load_saved(make_reference("bert", "", hidden_size=24), tmp_path).network
    with pytest.raises(BertsmithError, match="the student's width 24 does not divide into 16 relation heads"):
        AttentionRelations(VOCABULARY, teacher[1], student, heads=16)
    with pytest.raises(BertsmithError, match="layer is 9, but the teacher has 3 layers"):
        AttentionRelations(VOCABULARY, teacher[1], student, layer=9)
    with pytest.raises(BertsmithError, match="same tokenizer"):
        AttentionRelations(Vocabulary(98, 4, SPECIALS), teacher[1], student)


def test_a_cpu_holds_the_scores_of_few_places_at_once(teacher, student, monkeypatch):
    """Of as many as its caches take; the loss is what it was with all of them."""
    objective = Distillation(MaskedTokens(VOCABULARY), teacher[1], hard=0.0, cosine=0.0)
    asked = ask(objective, make_rows())
    sizes, score = [], type(teacher[1]).score

    def watch(network, hidden, batch, head, at):
        sizes.append(len(at))
        return score(network, hidden, batch, head, at)

    monkeypatch.setattr(type(teacher[1]), "score", watch)
    losses = []
    for most in (10**6, 5):
        monkeypatch.setattr("bertsmith.objectives.distillation.IN_CACHE", most)
        sizes.clear()
        losses.append(run(objective, student[1], asked)[1].item())
        assert max(sizes) == min(most, len(asked.given["compared"])) and sum(sizes) == 2 * len(asked.given["compared"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
