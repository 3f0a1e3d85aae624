"""How a fine-tuned folder is used, as code for its card: with bertsmith, and with transformers.

Names stand in code as they are: Markdown takes no sign away there.
"""

from dataclasses import replace

from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import plain, quote, visible
from bertsmith.evaluation.report.wording import is_on_hub, last_name

FOLDER = "path/to/this/folder"

# transformers 5 has no question-answering pipeline any more; these lines serve its older versions too.
SPAN = f"""import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{FOLDER}")
model = AutoModelForQuestionAnswering.from_pretrained("{FOLDER}")
question, context = "Who built it?", "The bridge was built by a smith in 1861."
given = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
offsets = given.pop("offset_mapping")[0].tolist()
with torch.no_grad():
    scores = model(**given)
start, end = scores.start_logits.argmax().item(), scores.end_logits.argmax().item()
print(context[offsets[start][0] : offsets[end][1]])"""

CHOOSE = f"""import torch
from transformers import AutoModelForMultipleChoice, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{FOLDER}")
model = AutoModelForMultipleChoice.from_pretrained("{FOLDER}")
prompt, choices = "Where would you find a lantern?", ["in a dark place", "in a river"]
given = tokenizer([prompt] * len(choices), choices, padding=True, return_tensors="pt")
with torch.no_grad():
    scores = model(**{{name: rows[None] for name, rows in given.items()}}).logits[0]
print(choices[scores.argmax()], scores.softmax(dim=-1).tolist())"""

SENTENCES = {
    "embed": f"""from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{FOLDER}")
vectors = model.encode(["a river bank", "the shore of a stream", "a savings bank"])
print(model.similarity(vectors[:1], vectors[1:]))""",
    "rerank": f"""from sentence_transformers import CrossEncoder

model = CrossEncoder("{FOLDER}")
print(model.rank("Who built it?", ["A smith built the bridge.", "It rained."]))""",
}

ENCODER = f"""from transformers import AutoModel

encoder = AutoModel.from_pretrained("{FOLDER}")  # without the members' heads, which are in `adapters`"""

CLASSES = {
    "classify": "AutoModelForSequenceClassification",
    "regress": "AutoModelForSequenceClassification",
    "rerank": "AutoModelForSequenceClassification",
    "tag": "AutoModelForTokenClassification",
    "span": "AutoModelForQuestionAnswering",
    "choose": "AutoModelForMultipleChoice",
}

MASK = f"""from transformers import pipeline

ask = pipeline("fill-mask", model="{FOLDER}")
print(ask(f"Ada {{ask.tokenizer.mask_token}} in London."))"""

OWN = f"""import bertsmith
from module import Class  # the task that this model was fine-tuned for

examples = []  # those to answer, as Class takes them
model = bertsmith.load("{FOLDER}")
print(model.predict(Class, examples))"""


def use_members(facts: RunFacts) -> list[tuple[str, RunFacts]]:
    """The members of several tasks, each by its name and as if it were the only one."""
    return [
        (visible(one["name"]), replace(facts, task=one["task"], pairs=one.get("pairs", False), members=[]))
        for one in facts.members
    ]


def use_bertsmith(facts: RunFacts) -> str:
    if facts.members:
        found = [(name, use_bertsmith(one).splitlines()[-1]) for name, one in use_members(facts)]
        calls_of = [call.replace("(model.", f'(model.use("{name}").', 1) for name, call in found]
        return "\n".join(["import bertsmith", "", f'model = bertsmith.load("{FOLDER}")', *calls_of])
    calls = {
        "pretrain": 'print(model.hidden("A text.").shape)',
        "mask": 'print(model.fill(f"Ada {model.tokenizer.mask_token} in London."))',
        "tag": 'print(model.tag("Ada Lovelace was born in London."))',
        "span": 'print(model.answer("Who built it?", "The bridge was built by a smith in 1861."))',
        "choose": 'print(model.choose("Where would you find a lantern?", ["in a dark place", "in a river"]))',
        "embed": 'print(model.similar("a river bank", ["the shore of a stream", "a savings bank"]))',
        "rerank": 'print(model.rerank("Who built it?", ["A smith built the bridge.", "It rained."]))',
    }
    texts = '"A first text.", "A second text."' if facts.pairs else '"A text."'
    calls |= {"regress": f"print(model.score({texts}))", "classify": f"print(model.classify({texts}))"}
    if facts.task not in calls:
        return OWN
    return f'import bertsmith\n\nmodel = bertsmith.load("{FOLDER}")\n{calls[facts.task]}'


def use_command_line(facts: RunFacts) -> str:
    if facts.members:
        return "\n".join(f"{use_command_line(one)} --use {name}" for name, one in use_members(facts))
    texts = '"A first text." --pair "A second text."' if facts.pairs else '"A text."'
    verbs = {
        "pretrain": 'embed "A text."',
        "mask": f'fill "Ada {facts.mask} in London."',
        "tag": 'tag "Ada Lovelace was born in London."',
        "span": 'answer "Who built it?" --context "The bridge was built by a smith in 1861."',
        "choose": 'choose "Where would you find a lantern?" "in a dark place" "in a river"',
        "embed": 'similar "a river bank" "the shore of a stream" "a savings bank"',
        "rerank": 'rerank "Who built it?" --texts FILE',
        "regress": f"score {texts}",
        "classify": f"classify {texts}",
    }
    return f"bertsmith {verbs.get(facts.task, 'evaluate --task module:Class --data FILE')} --model {FOLDER}"


def use_transformers(facts: RunFacts) -> str:
    """Nothing for a task of a person's own, or a head that no class of theirs has."""
    if facts.members:
        return ENCODER
    if facts.task == "mask":
        return MASK
    if facts.task in SENTENCES and not facts.settings.get("lora"):
        return SENTENCES[facts.task]
    if facts.task not in CLASSES or facts.settings.get("features", "none") not in ("none", "last"):
        return ""
    if facts.settings.get("recurrent"):
        return ""
    if facts.settings.get("lora"):
        return use_peft(facts)
    if facts.task in ("span", "choose"):
        return SPAN if facts.task == "span" else CHOOSE
    kind, option = "text-classification", ', function_to_apply="sigmoid"' if facts.several else ""
    call = '{"text": "A first text.", "text_pair": "A second text."}' if facts.pairs else '"A text."'
    if facts.task == "tag":
        kind, option = "token-classification", ', aggregation_strategy="first"'
        call = '"Ada Lovelace was born in London."'
    elif facts.task == "regress":
        option = ', function_to_apply="none"'
    else:
        option += ", top_k=None"
    made = f'ask = pipeline("{kind}", model="{FOLDER}"{option})'
    return f"from transformers import pipeline\n\n{made}\nprint(ask({call}))"


def use_peft(facts: RunFacts) -> str:
    kind = CLASSES[facts.task]
    outputs = f", num_labels={len(facts.labels) or 1}" if facts.task in ("classify", "regress", "tag") else ""
    base = facts.base if is_on_hub(facts.base) else f"path/to/{last_name(facts.base)}"
    return (
        f"from peft import PeftModel\nfrom transformers import {kind}\n\n"
        f"base = {kind}.from_pretrained({quote(base)}{outputs})\n"
        f'model = PeftModel.from_pretrained(base, "{FOLDER}")'
    )


def tell_difference(facts: RunFacts) -> str:
    """What the same weights do not do outside bertsmith."""
    missing = []
    if facts.thresholds:
        missing.append("the tuned threshold" + "s" * (len(facts.thresholds) > 1))
    if facts.reliability and "temperature" in facts.reliability:
        missing.append("the temperature")
    policies = {one["policy"] for one in facts.lengths.values() if one.get("policy")}
    if policies - {"head"}:
        missing.append(f"the policy for long inputs ({plain(', '.join(sorted(policies)))})")
    if facts.task == "tag":
        missing.append("the decoding that allows only well-formed tag sequences")
    if facts.task == "span":
        missing.append("windows over long contexts and the rule that an answer lies in the context")
    if not missing:
        return ""
    told = "The weights are the same, but transformers does not apply what `bertsmith.json` holds"
    return f"{told}: {'; '.join(missing)}."
