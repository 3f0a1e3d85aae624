"""Attribution: sums are complete in every job, numbers are captum's, occlusion is the model asked again."""

import json
import re
from contextlib import contextmanager

import captum.attr
import numpy as np
import pytest
import torch
from cli.running import run_here
from oracle import load_saved, make_reference, make_rows
from tasks.made import bert_pieces, bytelevel_files, open_both, wordpiece_files

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspection.aims import Aim
from bertsmith.inspection.attribution import METHODS, attribute
from bertsmith.inspection.attribution_drawing import _draw_words, tell
from bertsmith.inspection.gradients import Scorer, integrate, open_network
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.fitting import fit_head
from bertsmith.models.lora import LoraShape, each_low, put_lora
from bertsmith.tasks.task import Row, Task

TEXT, PAIR = "Paris is the capital of France.", "London is walking (slowly)."
HEADS = {
    "fill": "mask", "follows": "follows", "classify": "classify", "score": "classify", "tag": "tag", "answer": "span",
    "choose": "choose", "rerank": "classify",
}  # fmt: skip
GIVEN = {
    "fill": ("Paris is the [MASK] of France.",),
    "follows": (TEXT, PAIR),
    "classify": (TEXT, PAIR),
    "score": (TEXT,),
    "tag": (TEXT,),
    "answer": ("what is the capital?", TEXT),
    "choose": (TEXT, ["a lazy dog", "the quick fox"]),
    "rerank": (TEXT, ["a lazy dog", "the quick fox", PAIR]),
}


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder for each head, opened here and by the reference; made when it is first asked for."""
    known = {}

    def make(head, family="bert", **settings):
        key = (head, family, *map(str, settings.items()))
        if key not in known:
            files = bytelevel_files() if family == "roberta" else wordpiece_files(bert_pieces())
            known[key] = open_both(tmp_path_factory.mktemp("made"), family, head, files, **settings)
        return known[key]

    return make


@pytest.fixture(scope="module")
def demo(demo_model):
    return bertsmith.load(demo_model, device="cpu")


def find(made, job):
    outputs = {"num_labels": 1} if job in ("score", "rerank") else {}
    return made(HEADS[job], **outputs)


@pytest.mark.parametrize("job", HEADS)
def test_sums_are_complete_in_every_job(made, job):
    found = attribute(find(made, job).ours, job, *GIVEN[job])
    (part,) = found.parts
    assert found.is_complete and found.missed == part.found["integrated"].missed <= 0.01
    assert found.values.sum() == pytest.approx(part.difference, rel=0.0101)
    assert abs(part.difference) > 1e-3
    assert len(found.words) == len(found.values) and found.explained


def test_sums_are_complete_on_the_real_model(demo):
    one, other = "A boat drifted along the bank of the river.", "The savings bank raised its interest rates."
    found = attribute(demo, "similar", one, other, baseline="pad")
    assert [part.name for part in found.parts] == ["first text", "second text"]
    for part in found.parts:
        assert part.score == pytest.approx(demo.similar(one, [other])[0]["score"], abs=1e-5)
        assert part.found["integrated"].units.sum() == pytest.approx(part.difference, rel=0.0101)


def test_the_explained_number_is_the_models_own(made):
    ours = find(made, "classify").ours
    raw = {answer["label"]: answer["score"] for answer in ours.classify(TEXT, PAIR, raw=True)}
    best = max(raw, key=raw.__getitem__)
    found = attribute(ours, "classify", TEXT, PAIR)
    assert found.target == best and found.parts[0].score == pytest.approx(raw[best], abs=1e-5)
    for label in raw:
        part = attribute(ours, "classify", TEXT, PAIR, target=label, method="gradient").parts[0]
        assert part.score == pytest.approx(raw[label], abs=1e-5)
    ranked = find(made, "rerank").ours
    texts = GIVEN["rerank"][1]
    scores = ranked.rerank(TEXT, texts, raw=True)
    assert attribute(ranked, "rerank", TEXT, texts, method="gradient").target == scores[0]["text"]
    second = attribute(ranked, "rerank", TEXT, texts, target=scores[1]["index"], method="gradient")
    assert second.parts[0].score == pytest.approx(scores[1]["score"], abs=1e-5)
    number = attribute(find(made, "score").ours, "score", TEXT, method="gradient").parts[0].score
    assert number == pytest.approx(find(made, "score").ours.score(TEXT)[0]["score"], abs=1e-5)
    chosen = find(made, "choose").ours.choose(*GIVEN["choose"])[0]["choice"]
    assert attribute(find(made, "choose").ours, "choose", *GIVEN["choose"], method="gradient").target == chosen
    answered = find(made, "answer").ours.answer(*GIVEN["answer"])[0]["answer"]
    assert attribute(find(made, "answer").ours, "answer", *GIVEN["answer"], method="gradient").target == answered
    filled = find(made, "fill").ours.fill(*GIVEN["fill"])[0]["token_str"]
    assert attribute(find(made, "fill").ours, "fill", *GIVEN["fill"], method="gradient").target == filled


def their_ids(both, *texts):
    return both.tokenizer(*texts, return_tensors="pt")


def captum_numbers(both, given, base, number, steps):
    """Captum's own integrated gradients on the reference's word vectors, (pieces,)."""
    table = both.reference.get_input_embeddings()

    def score(vectors, mask, *more):
        kinds = {"token_type_ids": more[0]} if more else {}
        return number(both.reference(inputs_embeds=vectors, attention_mask=mask, **kinds))

    more = (given["attention_mask"], *([given["token_type_ids"]] if "token_type_ids" in given else []))
    explainer = captum.attr.IntegratedGradients(score)
    with torch.no_grad():
        vectors, start = table(given["input_ids"]), table(base)
    found = explainer.attribute(
        vectors, start, additional_forward_args=more, n_steps=steps, method="gausslegendre", internal_batch_size=64
    )
    return found.sum(dim=-1)[0].detach().numpy()


def hide(both, given, token):
    """The same row with every word replaced, special tokens kept."""
    ids = given["input_ids"].clone()
    keep = torch.tensor([id in both.tokenizer.all_special_ids for id in ids[0].tolist()])
    return ids.masked_fill(~keep, both.tokenizer.convert_tokens_to_ids(token))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("baseline", ["mask", "pad"])
def test_captum_says_the_same_of_classes(made, family, baseline):
    both = made("classify", family)
    given = their_ids(both, TEXT, PAIR)
    base = hide(both, given, getattr(both.tokenizer, f"{baseline}_token"))
    found = attribute(both.ours, "classify", TEXT, PAIR, target=2, steps=40, baseline=baseline)
    theirs = captum_numbers(both, given, base, lambda out: out.logits[:, 2], steps=40)
    ours = found.parts[0].found["integrated"]
    assert ours.steps == 40 and len(ours.pieces) == len(theirs)
    assert np.abs(ours.pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()


def test_captum_says_the_same_of_tags_masks_and_answers(made):
    both = find(made, "tag")
    found = attribute(both.ours, "tag", TEXT, at="capital", target=1, steps=40)
    given = their_ids(both, TEXT)
    place = given.word_ids(0).index(3)
    theirs = captum_numbers(both, given, hide(both, given, "[MASK]"), lambda out: out.logits[:, place, 1], 40)
    assert np.abs(found.parts[0].found["integrated"].pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()

    both = find(made, "fill")
    given = their_ids(both, *GIVEN["fill"])
    place = given["input_ids"][0].tolist().index(both.tokenizer.mask_token_id)
    word = both.tokenizer.convert_tokens_to_ids("city")
    theirs = captum_numbers(both, given, hide(both, given, "[PAD]"), lambda out: out.logits[:, place, word], 40)
    found = attribute(both.ours, "fill", *GIVEN["fill"], target="city", steps=40, baseline="pad")
    assert np.abs(found.parts[0].found["integrated"].pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()

    both = find(made, "answer")
    question, context = GIVEN["answer"]
    given = their_ids(both, question, context)
    start = given.char_to_token(0, context.index("capital"), 1)
    end = given.char_to_token(0, context.index("France"), 1)

    def number(out):
        return out.start_logits[:, start] + out.end_logits[:, end]

    theirs = captum_numbers(both, given, hide(both, given, "[MASK]"), number, 40)
    found = attribute(both.ours, "answer", question, context, target="capital of France", steps=40)
    assert np.abs(found.parts[0].found["integrated"].pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()


def test_captums_layer_attribution_and_gradient_times_input(made):
    both = find(made, "classify")
    given = their_ids(both, TEXT, PAIR)

    def score(ids):
        return both.reference(ids.long(), given["attention_mask"].expand_as(ids),
                              given["token_type_ids"].expand_as(ids)).logits[:, 1]  # fmt: skip

    layer = captum.attr.LayerIntegratedGradients(score, both.reference.bert.embeddings.word_embeddings)
    theirs = layer.attribute(given["input_ids"], hide(both, given, "[MASK]"), n_steps=30, method="gausslegendre")
    found = attribute(both.ours, "classify", TEXT, PAIR, target=1, steps=30, method="all").parts[0].found
    theirs = theirs.sum(dim=-1)[0].detach().numpy()
    assert np.abs(found["integrated"].pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()
    layer = captum.attr.LayerGradientXActivation(score, both.reference.bert.embeddings.word_embeddings)
    theirs = layer.attribute(given["input_ids"]).sum(dim=-1)[0].detach().numpy()
    assert np.abs(found["gradient"].pieces - theirs).max() <= 1e-4 * np.abs(theirs).max()


def test_captum_says_the_same_of_the_real_model(demo, demo_model):
    from transformers import AutoModel, AutoTokenizer

    one, other = "A boat drifted along the bank.", "The savings bank closed."
    tokenizer, model = AutoTokenizer.from_pretrained(demo_model), AutoModel.from_pretrained(demo_model).eval()
    given = tokenizer(one, return_tensors="pt")
    base = given["input_ids"].clone()
    base[:, 1:-1] = tokenizer.mask_token_id
    vector = torch.from_numpy(np.array(demo.embed(other)))

    def score(vectors):
        hidden = model(inputs_embeds=vectors, attention_mask=torch.ones(vectors.shape[:2])).last_hidden_state
        return torch.nn.functional.cosine_similarity(hidden.mean(dim=1), vector[None], dim=-1)

    table = model.get_input_embeddings()
    with torch.no_grad():
        ends = table(given["input_ids"]), table(base)
    theirs = captum.attr.IntegratedGradients(score).attribute(*ends, n_steps=24, method="gausslegendre")
    theirs = theirs.sum(dim=-1)[0].detach().numpy()
    ours = attribute(demo, "similar", one, other, steps=24).parts[0].found["integrated"].pieces
    assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()


def test_occlusion_is_the_model_asked_about_an_edited_text(made):
    ours = find(made, "classify").ours
    found = attribute(ours, "classify", TEXT, target=0, method="occlusion")

    def score(text):
        return next(a["score"] for a in ours.classify(text, raw=True) if a["label"] == found.target)

    for word, value in zip(found.words, found.values, strict=True):
        if word in ("is", "the", "capital", "of"):  # one piece each
            assert value == pytest.approx(score(TEXT) - score(re.sub(rf"\b{word}\b", "[MASK]", TEXT)), abs=1e-5)
        if word.startswith("["):
            assert value == 0
    whole = "We were playing."
    split = attribute(ours, "classify", whole, target=0, method="occlusion").parts[0]
    places = split.units[split.names.index("playing")]
    assert len(places) == 2
    edited = whole.replace("playing", "[MASK] [MASK]")
    assert split.found["occlusion"].units[split.names.index("playing")] == pytest.approx(
        score(whole) - score(edited), abs=1e-5
    )


def test_words_are_the_texts_own_and_their_pieces_add_up(made):
    both = made("classify", "roberta")
    part = attribute(both.ours, "classify", "We were playing; he walked.").parts[0]
    assert part.names[1:4] == ["We", "were", "playing"] and part.sides[0] is None and part.sides[1] == 0
    found = part.found["integrated"]
    for unit, places in enumerate(part.units):
        assert found.units[unit] == pytest.approx(found.pieces[places].sum())
    assert found.pieces[0] == 0 and part.pieces[0] == "<s>"  # a special token stays as it is


def test_zero_vectors_and_more_steps(made):
    ours = find(made, "classify").ours
    zero = attribute(ours, "classify", TEXT, baseline="zero")
    assert zero.is_complete and zero.baseline == "zero"
    few = attribute(ours, "classify", TEXT, target=2, steps=1)
    assert few.parts[0].found["integrated"].steps == 1 and few.data()["parts"][0]["found"]["integrated"]["missed"] > 0


def test_small_batches_give_the_same(made, monkeypatch):
    ours = find(made, "classify").ours
    whole = attribute(ours, "classify", TEXT, steps=20, method="all").parts[0].found
    monkeypatch.setattr("bertsmith.inspection.gradients.ROOM", 24)
    parts = attribute(ours, "classify", TEXT, steps=20, method="all").parts[0].found
    for method in METHODS:
        np.testing.assert_allclose(parts[method].pieces, whole[method].pieces, atol=1e-5)


def test_an_adapter_on_a_loaded_base(made, tmp_path):
    both = made("mask")
    base = load_checkpoint(both.ours.folder)
    fitted, _ = fit_head(base, "classify", ["no", "yes"], seed=0)
    put_lora(fitted, LoraShape(4), 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, low, place in each_low(fitted):
            low.up[place].normal_(0, 0.2, generator=generator)
    from bertsmith.models.adapters import write_adapter

    write_adapter(fitted, tmp_path / "adapter", both.ours.folder)
    (tmp_path / "adapter" / "bertsmith.json").write_text(
        json.dumps({"task": "classify", "settings": {"labels": ["no", "yes"], "several": False, "truncate": "head"}})
    )
    with_adapter = bertsmith.load(both.ours.folder, device="cpu", adapters={"mood": tmp_path / "adapter"})
    found = attribute(with_adapter, "classify", TEXT)
    raw = with_adapter.use("mood").classify(TEXT, raw=True)[0]
    assert found.target == raw["label"] and found.parts[0].score == pytest.approx(raw["score"], abs=1e-5)
    assert found.is_complete


def test_the_model_is_left_as_it_was(made):
    ours = find(made, "classify").ours
    before = ours.classify(TEXT, raw=True).answers
    attribute(ours, "classify", TEXT, method="all")
    assert ours.classify(TEXT, raw=True).answers == before
    assert not ours.checkpoint.network.embed.tokens.weight.requires_grad and ours.checkpoint.network.packed


def test_half_precision_is_explained_in_full(made):
    half = bertsmith.load(find(made, "classify").ours.folder, device="cpu", dtype="bfloat16")
    assert attribute(half, "classify", TEXT).is_complete


def test_labels_that_were_never_learnt(made):
    names = ["contradiction", "neutral", "entailment"]
    named = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    ours = made("classify", num_labels=3, **named).ours
    found = attribute(ours, "classify", TEXT, labels=["city", "a lazy dog"])
    assert found.target == ours.classify(TEXT, labels=["city", "a lazy dog"])[0]["label"]
    assert found.is_complete and "entails" in found.explained


def test_long_texts(made):
    words = "Paris is the capital of France . " * 30
    found = attribute(find(made, "classify").ours, "classify", words, steps=4)
    assert found.parts[0].truncated > 0 and len(found.parts[0].pieces) == 64
    tagged = attribute(find(made, "tag").ours, "tag", words, at=150, steps=4)
    assert tagged.target.startswith("capital:") and len(tagged.parts[0].pieces) == 64
    context = words + "a lazy fox"
    answered = attribute(find(made, "answer").ours, "answer", "what is it?", context, target="fox", steps=4)
    assert "fox" in answered.words
    filled = attribute(find(made, "fill").ours, "fill", words + "the quick [MASK] .", steps=4)
    assert "[MASK]" in filled.words


def test_numbers_may_be_texts_as_a_command_line_gives_them(made):
    ours = find(made, "tag").ours
    at = lambda place: attribute(ours, "tag", "the 1 city 2", at=place, steps=1).target  # noqa: E731
    assert at("2").startswith("2: ") and at(2).startswith("city: ") and at("0").startswith("the: ")
    with pytest.raises(BertsmithError, match="names no word; the text has 4"):
        at("9")
    ours = find(made, "classify").ours
    named, numbered = (attribute(ours, "classify", TEXT, target=one, steps=1).target for one in (1, "1"))
    assert named == numbered
    with pytest.raises(BertsmithError, match="is no label here"):
        attribute(ours, "classify", TEXT, target="99")


@pytest.mark.parametrize(
    "job, given, more, says",
    [
        ("dance", (TEXT,), {}, "use one of fill, follows"),
        ("classify", (), {}, "takes a text or a pair of texts, but 0 were given"),
        ("answer", ("who",), {}, "takes a question and a context, but 1 was given"),
        ("classify", ([TEXT],), {}, "one input at a time"),
        ("classify", (TEXT,), {"target": "joy"}, "target='joy' is no label here; use one of"),
        ("classify", (TEXT,), {"target": True}, "is no label here"),
        ("classify", (TEXT,), {"method": "magic"}, "use one of integrated, gradient, occlusion, or all"),
        ("classify", (TEXT,), {"baseline": "noise"}, "use one of mask, pad, zero"),
        ("classify", (TEXT,), {"steps": 0}, "steps"),
        ("classify", (TEXT,), {"at": 3}, "leave it out"),
        ("classify", (TEXT, PAIR), {"labels": ["a"]}, "leave the pair out"),
        ("fill", (TEXT,), {}, "no mask"),
        ("fill", GIVEN["fill"], {"at": 2}, "names no mask"),
        ("fill", GIVEN["fill"], {"target": "playing"}, "has 2 pieces"),
        ("fill", GIVEN["fill"], {"target": 3}, "must be a word"),
        ("tag", (TEXT,), {"at": "Oslo"}, "names no word"),
        ("tag", ("",), {}, "no words"),
        ("answer", GIVEN["answer"], {"target": "Rome"}, "does not stand in the context"),
        ("score", (TEXT,), {"target": 1}, "leave it out"),
        ("similar", (TEXT,), {}, "takes two texts"),
        ("similar", (TEXT, PAIR), {"target": 1}, "leave it out"),
        ("choose", (TEXT, ["a", "b"]), {"target": "c"}, "no choice"),
    ],
)
def test_mistakes_end_in_a_sentence(made, job, given, more, says):
    ours = find(made, job if job in HEADS else "classify").ours
    with pytest.raises(BertsmithError, match=says):
        attribute(ours, job, *given, **more)


def test_a_model_without_the_head(demo):
    with pytest.raises(BertsmithError, match="no head to classify texts"):
        attribute(demo, "classify", TEXT)


def test_files(made, tmp_path):
    found = attribute(find(made, "classify").ours, "classify", "a <script>alert(1)</script> city", method="all")
    drawn = found.save(tmp_path / "a.svg").read_text()
    assert drawn.startswith("<svg ") and "<script" not in drawn and "&lt;" in drawn
    kept = json.loads(found.save(tmp_path / "a.json").read_text())
    assert kept == found.data() and set(kept["methods"]) == set(METHODS)
    assert kept["parts"][0]["found"]["integrated"]["units"] == found.values.tolist()


class Classes(Task):
    """The least of a task: what a head says."""

    head = "classify"


@pytest.mark.parametrize("family", ["albert", "distilbert", "electra", "modernbert", "mpnet", "deberta-v2"])
def test_every_family_is_as_captum_says(tmp_path, family):
    reference = make_reference(family, "classify")
    checkpoint = load_saved(reference, tmp_path)
    checkpoint.network.requires_grad_(False)
    checkpoint.network.pack()  # as a loaded model is
    ids, segments = (rows[0] for rows in make_rows(reference, (17,)))
    aim = Aim("text", (), None, Row(ids.tolist(), segments.tolist()), Classes(None, 64, "head"), lambda s: s[0, 3])
    scorer = Scorer(open_network(checkpoint.network), aim, torch.device("cpu"), 64)  # rows in several passes
    given = scorer.look_up(ids)
    base = scorer.look_up(ids.roll(5))
    ours = integrate(scorer, given, base, 24)

    def score(vectors):
        has_kinds = hasattr(reference.config, "type_vocab_size")
        kinds = {"token_type_ids": segments.expand(len(vectors), -1)} if has_kinds else {}
        return reference(inputs_embeds=vectors, attention_mask=torch.ones(vectors.shape[:2]), **kinds).logits[:, 3]

    theirs = captum.attr.IntegratedGradients(score).attribute(
        given[None], base[None], n_steps=24, method="gausslegendre"
    )
    theirs = theirs.sum(dim=-1)[0].detach().numpy()
    assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()


def test_several_labels(made):
    ours = made("classify", problem_type="multi_label_classification").ours
    found = attribute(ours, "classify", TEXT)
    raw = ours.classify(TEXT, raw=True)
    assert found.target == raw[0]["label"] and found.parts[0].score == pytest.approx(raw[0]["score"], abs=1e-5)
    assert found.is_complete


def test_how_far_it_is_can_be_heard(made):
    """Every step of the integral, every piece and every word is counted, up to their numbers in what was found."""
    heard: list[tuple[str, int, int]] = []
    words = "Paris is the capital of France . " * 30
    ours = find(made, "tag").ours
    part = attribute(ours, "tag", words, at=150, method="all", steps=200, tell=lambda *step: heard.append(step)).parts[
        0
    ]
    ends = {"steps of the integral": 200, "pieces hidden": len(part.pieces), "words hidden": len(part.units)}
    assert list(dict.fromkeys(name for name, _, _ in heard)) == list(ends)
    for name, end in ends.items():
        counts = [done for other, done, total in heard if other == name and total == end]
        assert len(counts) == sum(other == name for other, _, _ in heard)
        assert counts == sorted(set(counts)) and counts[-1] == end
    assert len([name for name, _, _ in heard if name == "steps of the integral"]) > 1


def test_the_verb_shows_a_bar_on_a_terminal(made, monkeypatch, capsys):
    shown: list[tuple[str, int, int]] = []

    @contextmanager
    def listen():
        yield lambda *step: shown.append(step)

    monkeypatch.setattr("bertsmith.cli.inspect_attribution.showing_progress", listen)
    monkeypatch.setattr("bertsmith.cli.inspect_heads.showing_progress", listen)
    model = ("--model", str(find(made, "tag").ours.folder), "--device", "cpu")
    ran = run_here(monkeypatch, capsys, ("inspect", "attribution", "tag", TEXT, "--method", "occlusion", *model))
    assert ran.status == 0 and {name for name, _, _ in shown} == {"pieces hidden", "words hidden"}
    shown.clear()
    ran = run_here(monkeypatch, capsys, ("inspect", "heads", "--job", "tag", TEXT, *model))
    heads = find(made, "tag").ours.checkpoint.config
    assert ran.status == 0 and len({done for _, done, _ in shown}) == heads.depth * heads.heads


def test_numbers_below_zero_have_one_sign():
    found = {"missed": 0.0, "sum": -0.25}
    told = "score −0.500, of the mask baseline −0.008"
    assert tell({"score": -0.5, "start": -0.008}, found, "mask") == f"{told}; sum −0.250"
    assert tell({"score": -0.5, "start": -0.008}, {"missed": None}, "mask") == told


def test_a_special_token_that_weighs_much_is_no_grey_on_blue():
    """Grey letters are for cells that are nearly white."""
    drawn, _ = _draw_words(["[CLS]", "good", "[SEP]"], [None, 0, None], [0.01, 0.2, -0.9], 0.9, 0.0)
    kinds = {name: "quiet" in tag for tag, name in re.findall(r"(<text[^>]*>)([^<]*)<", drawn)}
    assert kinds["[CLS]"] and not kinds["[SEP]"] and not kinds["good"]
