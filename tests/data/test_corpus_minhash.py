"""Signatures estimate the Jaccard similarity within the error that theory gives, and find what they should find."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.data.corpus.minhash import PLACES, band_keys, estimate, repeated_share, shingles, sign


def sets_of(hashes, counts):
    bounds = np.cumsum([0, *counts])
    return [set(hashes[bounds[n] : bounds[n + 1]].tolist()) for n in range(len(counts))]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(30, 3000), changed=st.floats(0, 1))
def test_the_estimate_is_within_its_error_of_the_exact_similarity(seed, length, changed):
    draw = np.random.default_rng(seed)
    one = draw.integers(0, 30_000, length)
    other = np.where(draw.random(length) < changed**3, draw.integers(0, 30_000, length), one)
    hashes, counts = shingles(np.concatenate([one, other]), np.array([length, length]))
    left, right = sets_of(hashes, counts)
    exact = len(left & right) / len(left | right)
    signatures = sign(hashes, counts)
    # The standard error is √(J(1-J)/128), to which equal bytes by chance add a little; five of them are a safe bound.
    error = np.sqrt((exact * (1 - exact) + 1 / 256) / PLACES)
    assert abs(float(estimate(signatures[0], signatures[1])) - exact) <= 5 * error


def test_errors_are_centred_and_as_wide_as_theory_says():
    draw = np.random.default_rng(0)
    errors = []
    for _ in range(200):
        one = draw.integers(0, 30_000, 400)
        other = np.where(draw.random(400) < 0.05, draw.integers(0, 30_000, 400), one)
        hashes, counts = shingles(np.concatenate([one, other]), np.array([400, 400]))
        left, right = sets_of(hashes, counts)
        exact = len(left & right) / len(left | right)
        signatures = sign(hashes, counts)
        errors.append((float(estimate(signatures[0], signatures[1])) - exact) / np.sqrt(exact * (1 - exact) / PLACES))
    assert abs(np.mean(errors)) < 0.25 and 0.8 < np.std(errors) < 1.2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 1000))
def test_shingles_never_cross_documents_and_slices_do_not_matter(lengths, seed):
    draw = np.random.default_rng(seed)
    documents = [draw.integers(0, 9, length) for length in lengths]
    hashes, counts = shingles(np.concatenate(documents), np.array(lengths))
    alone = [shingles(document, np.array([len(document)]))[0] for document in documents]
    assert counts.tolist() == [max(length - 4, 0) for length in lengths]
    assert hashes.tolist() == [value for one in alone for value in one.tolist()]
    for document, share in zip(documents, repeated_share(hashes, counts), strict=True):
        runs = [tuple(document[place : place + 5].tolist()) for place in range(len(document) - 4)]
        assert np.isclose(share, 1 - len(set(runs)) / len(runs) if runs else 0)
    some = counts > 0
    if some.any():
        kept = np.repeat(some, counts)
        together = sign(hashes[kept], counts[some])
        apart = [sign(one, np.array([len(one)]))[0] for one in alone if len(one)]
        assert np.array_equal(together, apart)


def test_keys_find_near_documents_and_part_far_ones():
    draw = np.random.default_rng(1)
    found = {0.9: 0, 0.5: 0}
    for similarity in found:
        for _ in range(100):
            universe = draw.integers(0, 2**62, 1000, dtype=np.uint64)
            shared = int(1000 * similarity)
            rest = draw.integers(0, 2**62, 1000 - shared, dtype=np.uint64)[: (1000 - shared) // 2]
            left = universe[: shared + (1000 - shared) // 2]
            counts = np.array([len(left), shared + len(rest)])
            keys = band_keys(sign(np.concatenate([left, universe[:shared], rest]), counts))
            found[similarity] += bool((keys[0] == keys[1]).any())
    assert found[0.9] >= 98 and found[0.5] <= 20
