"""OpenAI's own client asks a real server, and gets what the library gives."""

import asyncio
import time
from base64 import b64decode

import httpx
import numpy as np
import openai
import pytest
from serving.served import serving, serving_models

import bertsmith
from bertsmith.serving.asks import Refusal
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents

TEXTS = ["a river bank", "Ada Lovelace lived in London.", "naïve café 東京 🙂", " "]
KEY = "a-key-of-this-test"
CLOSE = 1e-5


@pytest.fixture(scope="module")
def library(demo_model):
    return bertsmith.load(demo_model, device="cpu")


@pytest.fixture(scope="module")
def address(demo_model, heads):
    models = {"mini": bertsmith.load(demo_model, device="cpu"), "small": bertsmith.load(heads["bare"], device="cpu")}
    with serving_models(models, keys=(KEY,), inputs=20) as found:
        yield found


@pytest.fixture(scope="module")
def client(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as made:
        yield made


def vectors(answer):
    assert [one.index for one in answer.data] == list(range(len(answer.data)))
    return np.array([one.embedding for one in answer.data], dtype=np.float32)


def test_it_asks_for_base64_unless_told_otherwise(client, library):
    answer = client.embeddings.create(model="mini", input=TEXTS)
    np.testing.assert_allclose(vectors(answer), library.embed(TEXTS), atol=CLOSE)
    assert answer.object == "list" and answer.model == "mini"
    tokens = sum(len(encoding.ids) for encoding in library.tokenize(TEXTS))
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (tokens, tokens)


@pytest.mark.parametrize("given", [TEXTS[0], TEXTS], ids=["one", "several"])
def test_a_list_of_numbers_and_base64_are_the_same_vectors(client, library, given):
    told = [client.embeddings.create(model="mini", input=given, encoding_format=way) for way in ("float", "base64")]
    assert isinstance(told[0].data[0].embedding, list) and isinstance(told[1].data[0].embedding, str)
    read = [np.frombuffer(b64decode(one.embedding), "<f4") for one in told[1].data]
    np.testing.assert_array_equal(vectors(told[0]), np.stack(read))
    np.testing.assert_allclose(np.stack(read), np.atleast_2d(library.embed(given)), atol=CLOSE)


def test_dimensions_cut_the_vector_and_keep_its_length(client, library):
    found = vectors(client.embeddings.create(model="mini", input=TEXTS, dimensions=64))
    np.testing.assert_allclose(found, library.embed(TEXTS, dims=64, normalize=True), atol=CLOSE)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=CLOSE)


def test_token_ids_do_for_texts(client, library):
    ids = [list(encoding.ids) for encoding in library.tokenize(TEXTS[:3])]
    wanted = library.embed(TEXTS[:3])
    np.testing.assert_allclose(vectors(client.embeddings.create(model="mini", input=ids)), wanted, atol=CLOSE)
    bare = [row[1:-1] for row in ids]
    np.testing.assert_allclose(vectors(client.embeddings.create(model="mini", input=bare)), wanted, atol=CLOSE)
    one = client.embeddings.create(model="mini", input=ids[1])
    np.testing.assert_allclose(vectors(one), wanted[1:2], atol=CLOSE)


def test_a_name_picks_a_model_and_an_unknown_one_means_the_default(client, heads):
    small = client.embeddings.create(model="small", input=TEXTS[0])
    wanted = bertsmith.load(heads["bare"], device="cpu").embed(TEXTS[0], normalize=True)
    np.testing.assert_allclose(vectors(small)[0], wanted, atol=CLOSE)
    assert small.model == "small"
    assert client.embeddings.create(model="text-embedding-3-small", input=TEXTS[0]).model == "mini"


def test_the_path_without_version_does_too(address, library):
    with openai.OpenAI(base_url=address, api_key=KEY) as made:
        found = vectors(made.embeddings.create(model="mini", input=TEXTS[0], user="somebody", extra_body={"x": 1}))
        assert [model.id for model in made.models.list()] == ["mini", "small"]
    np.testing.assert_allclose(found[0], library.embed(TEXTS[0]), atol=CLOSE)


def test_models_are_listed_and_found(client):
    listed = client.models.list()
    assert [model.id for model in listed] == ["mini", "small"]
    assert all(model.object == "model" and model.created > 0 and model.owned_by for model in listed)
    assert client.models.retrieve("small").id == "small"
    with pytest.raises(openai.NotFoundError, match="there is no model 'other'; the models are mini, small"):
        client.models.retrieve("other")


def test_what_was_cut_is_told(client, library):
    long = "river " * 600
    answer = client.embeddings.with_raw_response.create(model="mini", input=["short", long])
    dropped = library.embed(["short", long]).truncated
    assert sum(dropped) > 0 and int(answer.headers["x-truncated-tokens"]) == sum(dropped)
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"input": ""}, "input is empty"),
        ({"input": []}, "input is empty"),
        ({"input": ["a", ""]}, r"input\[1\] is empty"),
        ({"input": [[5], []]}, r"input\[1\] is empty"),
        ({"input": ["a"] * 21}, "at most 20"),
        ({"input": [5, "a"]}, "must be a text, a list of texts, a list of token ids"),
        ({"input": [-1]}, "must be a text, a list of texts, a list of token ids"),
        ({"input": [10**9]}, "1,?000,?000,?000"),
        ({"input": {"text": "a"}}, "must be a text, a list of texts, a list of token ids"),
        ({"input": "a", "dimensions": 385}, "dimensions is 385, but the vectors of 'mini' have 384 numbers"),
        ({"input": "a", "dimensions": 0}, "'dimensions' does not fit"),
        ({"input": "a", "encoding_format": "hex"}, "'encoding_format' does not fit"),
    ],
)
def test_mistakes_are_told_as_its_client_reads_them(client, given, sentence):
    with pytest.raises(openai.BadRequestError, match=sentence) as caught:
        client.embeddings.create(model="mini", **given)
    error = caught.value.response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"} and error["type"] == "invalid_request_error"


def test_without_the_key_nobody_is_answered(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="another", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.embeddings.create(model="mini", input="a")
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()


def test_many_at_once_get_each_their_own(address, library):
    texts = [f"{word} number {number}" for number in range(8) for word in ("one", "river", "a long winding road")]

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as made:
            return await asyncio.gather(*(made.embeddings.create(model="mini", input=text) for text in texts))

    found = np.concatenate([vectors(answer) for answer in asyncio.run(ask_all())])
    np.testing.assert_allclose(found, library.embed(texts), atol=CLOSE)


class Busy(Local):
    """Has no time for the first that ask."""

    refusals = 0
    asked = ()

    async def ask(self, ask):
        self.asked = (*self.asked, time.monotonic())
        if len(self.asked) <= self.refusals:
            raise Refusal("overloaded", "too many requests are waiting; ask again later.", 0.9)
        return await super().ask(ask)


@pytest.fixture
def busy(heads):
    backend = Busy(Residents({"small": bertsmith.load(heads["bare"], device="cpu")}))
    yield backend
    backend.close()


def test_a_full_server_is_asked_again_when_it_said(busy):
    busy.refusals = 1
    with serving(busy) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="x") as made:
        answer = made.embeddings.with_raw_response.create(model="small", input="a")
    assert answer.retries_taken == 1 and len(answer.parse().data) == 1
    assert busy.asked[1] - busy.asked[0] >= 0.9  # its own first pause is half a second


def test_who_does_not_ask_again_is_told_why(busy):
    busy.refusals = 9
    with serving(busy) as address:
        with (
            openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as made,
            pytest.raises(openai.RateLimitError, match="too many requests are waiting") as caught,
        ):
            made.embeddings.create(model="small", input="a")
        assert caught.value.response.headers["retry-after"] == "1"
        assert caught.value.type == "rate_limit_error"
        shown = httpx.get(f"{address}/v1/models").json()
        assert shown["data"][0]["capabilities"]
