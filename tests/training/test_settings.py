"""Every wrong setting gets one sentence before anything is read or trained."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.training.choices import TaskChoices, read_toml, refuse_unused, sort_choices, take_columns
from bertsmith.training.schedule import count_steps
from bertsmith.training.settings import Training

WRONG = [
    ("epochs", 0, "epochs is 0; it must be more than 0."),
    ("epochs", "three", "epochs is 'three'; it must be a number."),
    ("epochs", float("inf"), "epochs is inf; it must be a finite number."),
    ("max_steps", 0, "max_steps is 0; it must be at least 1."),
    ("max_steps", 2.5, "max_steps is 2.5; it must be a whole number."),
    ("batch", 0, "batch is 0; it must be at least 1."),
    ("batch", True, "batch is True; it must be a whole number."),
    ("batch", None, "batch is None; it must be a whole number."),
    ("batch_tokens", -1, "batch_tokens is -1; it must be at least 1."),
    ("rate", -1e-5, "rate is -1e-05; it must be more than 0."),
    ("rate", float("nan"), "rate is nan; it must be a finite number."),
    ("schedule", "exponential", "schedule is 'exponential', which is not a choice; use one of linear, cosine, "),
    ("schedule", 3, "schedule is 3, which is not a choice; use one of linear, cosine, constant, trapezoid."),
    ("warmup", 1.5, "warmup is 1.5; it must be between 0 and 1."),
    ("cooldown", -0.1, "cooldown is -0.1; it must be between 0 and 1."),
    ("weight_decay", -1, "weight_decay is -1; it must be at least 0."),
    ("beta1", 1.0, "beta1 is 1.0; it must be at least 0 and less than 1."),
    ("beta2", -0.1, "beta2 is -0.1; it must be at least 0 and less than 1."),
    ("eps", 0.0, "eps is 0.0; it must be more than 0."),
    ("clip", -1.0, "clip is -1.0; it must be at least 0."),
    ("layer_decay", 0.0, "layer_decay is 0.0; it must be more than 0."),
    ("unfreeze", -1.0, "unfreeze is -1.0; it must be at least 0."),
    ("dropout", 1.0, "dropout is 1.0; it must be at least 0 and less than 1."),
    ("precision", "fp8", "precision is 'fp8', which is not a choice; use one of auto, fp32, bf16, fp16."),
    ("recompute", 1, "recompute is 1; it must be true or false."),
    ("class_weights", "inverse", "class_weights is 'inverse', which is not a choice; use one of none, balanced."),
    ("focal", -2.0, "focal is -2.0; it must be at least 0."),
    ("smoothing", 1.0, "smoothing is 1.0; it must be at least 0 and less than 1."),
    ("r_drop", "much", "r_drop is 'much'; it must be a number."),
    ("adversarial", -1.0, "adversarial is -1.0; it must be at least 0."),
    ("adversarial_reach", 0.0, "adversarial_reach is 0.0; it must be more than 0 and at most 1."),
    ("adversarial_reach", 0.1, "adversarial_reach is given, but not how much it counts; give adversarial too, as 1."),
    ("optimizer", "sgd", "optimizer is 'sgd', which is not a choice; use one of adamw, lamb, muon."),
    ("optim", "muon", "optim is not a setting; did you mean optimizer?"),
    ("momentum", 1.0, "momentum is 1.0; it must be from 0 to 0.9999."),
    ("momentum", 0.9, "momentum is for optimizer muon, and optimizer is 'adamw'; leave it out, or"),
    ("seed", -1, "seed is -1; it must be at least 0."),
    ("seed", 2**64, f"seed is {2**64}; it must be less than 2 to the power of 63."),
    ("evaluate_every", 0, "evaluate_every is 0; it must be at least 1."),
    ("metric", 3, "metric is 3; it must be a word."),
    ("patience", -1, "patience is -1; it must be at least 0."),
    ("save_minutes", -1.0, "save_minutes is -1.0; it must be at least 0."),
    ("log_every", 0, "log_every is 0; it must be at least 1."),
    ("spread", "zero", "spread is 'zero', which is not a choice; use one of auto, ddp, fsdp."),
    ("graphs", "yes", "graphs is 'yes'; it must be true or false."),
    ("dev_share", 1.0, "dev_share is 1.0; it must be between 0 and 1."),
    ("length", "long", "length is 'long'; it must be a whole number."),
    ("several", "yes", "several is 'yes'; it must be true or false."),
    ("learning_rate", 1e-5, "learning_rate is not a setting"),
    ("epoch", 3, "epoch is not a setting; did you mean epochs?"),
]


@pytest.mark.parametrize("name, value, sentence", WRONG)
def test_a_wrong_setting_is_one_sentence(name, value, sentence):
    with pytest.raises(BertsmithError) as caught:
        sort_choices({name: value})
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@given(st.integers(1, 100), st.floats(1e-9, 1.0), st.floats(0, 1), st.sampled_from(["linear", "cosine"]))
def test_settings_that_are_right_are_taken(batch, rate, warmup, schedule):
    given = {"batch": batch, "rate": rate, "warmup": warmup, "schedule": schedule, "text": "review", "length": 99}
    choices, training, columns = sort_choices(given)
    assert (training.batch, training.rate, training.warmup, training.schedule) == (batch, rate, warmup, schedule)
    assert choices.length == 99 and columns == {"text": "review"}


def test_a_whole_number_is_a_number():
    assert Training(epochs=3, rate=1, dropout=0).epochs == 3


@pytest.mark.parametrize(
    ("steps_an_epoch", "settings", "steps"),
    [
        (2000, {}, 6000),
        (34, {}, 102),
        (20, {}, 100),
        (1, {}, 20),
        (4, {"epochs": 2}, 8),
        (4, {"epochs": 0.1}, 1),
        (4, {"max_steps": 7}, 7),
        (4, {"epochs": 1, "max_steps": 7}, 4),  # both are the most that was asked for
        (4, {"epochs": 2, "max_steps": 7}, 7),
    ],
)
def test_small_data_is_seen_more_often(steps_an_epoch, settings, steps):
    assert count_steps(steps_an_epoch, Training(**settings)) == steps


def test_a_file_of_settings_is_flat_or_has_tables(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('epochs = 2\nbatch-tokens = 4096\n[data]\ntext = "review"\n[training]\nrate = 3e-5\nr-drop = 1.0\n')
    found = read_toml(path)
    assert found == {"epochs": 2, "batch_tokens": 4096, "text": "review", "rate": 3e-5, "r_drop": 1.0}
    assert sort_choices(found)[1].batch_tokens == 4096


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"epochs = ", r"run\.toml is not valid TOML: .*\.$"),
        (b"epochs = 1\nepochs = 2", r"run\.toml is not valid TOML: .*\.$"),
        (b'text = "caf\xe9"', r"run\.toml is not valid TOML: .*\.$"),
        (b"rate = 1e-5\n[training]\nrate = 2e-5", r"run\.toml has rate twice; leave one of them out\.$"),
        (None, r"run\.toml cannot be read: No such file or directory\.$"),
    ],
)
def test_a_broken_file_of_settings_is_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "run.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BertsmithError, match=sentence):
        read_toml(path)


def test_numbers_without_end_in_a_file_are_refused(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("epochs = inf\n")
    with pytest.raises(BertsmithError, match=r"^epochs is inf; it must be a finite number\.$"):
        sort_choices(read_toml(path))


@pytest.mark.parametrize(
    "given, sentence",
    [
        (["text"], 'columns is [\'text\']; give each role its column, as in {"text": "review"}.'),
        ({"txt": "review"}, "txt is not a column's role; did you mean text?"),
        ({"text": 2.5}, "text is 2.5; give the name or the number of a column."),
        ({"text": ["a", "b"]}, "text is ['a', 'b']; give the name or the number of a column."),
        ({"label": []}, "label is []; give the name or the number of a column."),
        ({"label": ["a", None]}, "label is None; give the name or the number of a column."),
    ],
)
def test_columns_that_are_none(given, sentence):
    with pytest.raises(BertsmithError) as caught:
        take_columns(given)
    assert str(caught.value) == sentence
    assert take_columns({"text": "review", "label": 2, "pair": None}) == {"text": "review", "label": "2"}
    assert take_columns({"label": ["toxic", 3]}) == {"label": "toxic,3"}


@pytest.mark.parametrize(
    "name, ours",
    [("learning_rate", "rate"), ("lr", "rate"), ("batch_size", "batch"), ("num_train_epochs", "epochs"),
     ("max_length", "length"), ("weight-decay", "weight_decay"), ("Learning-Rate", "rate"), ("fp16", "precision")],
)  # fmt: skip
def test_names_of_other_libraries_find_ours(name, ours):
    with pytest.raises(BertsmithError, match=rf"^{name} is not a setting; did you mean {ours}\?$"):
        sort_choices({name: 1})


@pytest.mark.parametrize(
    "task, chosen, users",
    [("classify", {"scheme": "iob2"}, "tag"), ("classify", {"overlap": 8}, "span"),
     ("tag", {"several": False}, "classify"), ("span", {"calibrate": True}, "classify"),
     ("regress", {"label_names": "x"}, "classify and tag"),
     ("choose", {"answer_length": 3}, "span")],
)  # fmt: skip
def test_what_a_task_has_no_use_for_is_refused(task, chosen, users):
    name = next(iter(chosen))
    wanted = rf"^{name} is for {users} and has no use in {task}; leave --{name.replace('_', '-')} out\.$"
    with pytest.raises(BertsmithError, match=wanted):
        refuse_unused(task, TaskChoices(**chosen))
    refuse_unused("module:Class", TaskChoices(**chosen))
    refuse_unused(users.split()[0], TaskChoices(**chosen, truncate="tail", length=9))


@pytest.mark.parametrize("value", ["foo", 3, ""])
def test_a_policy_that_is_none_is_refused_at_once(value):
    with pytest.raises(BertsmithError, match="not a choice; use one of error, head, tail, head\\+tail, windows"):
        sort_choices({"truncate": value})
