"""Which documents are nearly the same. In: token ids. Out: signatures of 128 bytes, and how alike two of them say.

MinHash (Broder 1997) over sequences of five tokens: the share of equal places in two signatures estimates the Jaccard
similarity of the two sets. Of each minimum a byte is kept (Li and König 2010), which makes eight places one 64-bit key:
documents that share a key are compared. All of it is arithmetic on whole numbers, the same on every machine.
"""

import numpy as np

SHINGLE = 5
PLACES = 128
BAND = 8  # places in a key; 16 keys find two documents of similarity 0.8 with probability 0.95, of 0.9 with 0.9999
LEAST = 50  # tokens of a document; shorter ones are compared as a whole
_SLICE = 1 << 14  # shingles worked on at a time, so that they stay in the processor's cache
_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(values: np.ndarray) -> np.ndarray:
    """SplitMix64's last step: near values become far ones."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_FACTORS = _mix(np.arange(1, PLACES + 1, dtype=np.uint64) * _ODD) | np.uint64(1)
_SHIFTS = _mix(np.arange(PLACES + 1, 2 * PLACES + 1, dtype=np.uint64) * _ODD)


def shingles(ids: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of each document's sequences of five tokens, one after the other, and how many each document has."""
    per_document = np.maximum(counts - SHINGLE + 1, 0)
    spread = _mix(ids.astype(np.uint64) * _ODD + _ODD)
    length = len(ids) - SHINGLE + 1
    if length <= 0 or not per_document.any():
        return np.empty(0, np.uint64), per_document
    hashes = np.zeros(length, np.uint64)
    for place in range(SHINGLE):
        hashes = hashes * _ODD + spread[place : place + length]
    starts = np.cumsum(counts) - counts
    within = np.arange(int(per_document.sum())) - np.repeat(np.cumsum(per_document) - per_document, per_document)
    return _mix(hashes[np.repeat(starts, per_document) + within]), per_document


def sign(hashes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(documents, 128) uint8; every document must have a shingle."""
    signatures = np.empty((len(counts), PLACES), np.uint8)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    first = 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + _SLICE, side="right")) - 1)
        here = hashes[bounds[first] : bounds[last]]
        starts = bounds[first:last] - bounds[first]
        turned = np.empty_like(here)
        for place in range(PLACES):
            np.multiply(here, _FACTORS[place], out=turned)
            np.add(turned, _SHIFTS[place], out=turned)
            # The high bits of a product are the well-mixed ones, and the minimum's highest are mostly zero.
            lowest = np.minimum.reduceat(turned, starts)
            signatures[first:last, place] = (_mix(lowest) >> np.uint64(56)).astype(np.uint8)
        first = last
    return signatures


def band_keys(signatures: np.ndarray) -> np.ndarray:
    """(documents, 16) uint64."""
    return np.ascontiguousarray(signatures).view(f"<u{BAND}")


def estimate(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The Jaccard similarity that two rows of signatures speak for; a byte is equal by chance once in 256."""
    equal = (left == right).mean(axis=-1)
    return np.asarray((equal - 1 / 256) / (1 - 1 / 256))


def repeated_share(hashes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For each document, the share of its shingles that it has had before."""
    shares = np.zeros(len(counts))
    has = counts > 0
    if has.any():
        document = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
        keys = np.sort((document << np.uint64(40)) | (hashes >> np.uint64(24)))
        is_new = np.concatenate([[True], keys[1:] != keys[:-1]])
        starts = (np.cumsum(counts) - counts)[has]
        shares[has] = 1 - np.add.reduceat(is_new.astype(np.int64), starts) / counts[has]
    return shares
