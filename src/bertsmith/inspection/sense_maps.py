"""How alike vectors are: cosines, a map in two dimensions, groups. In: (n, width) arrays. Out: the same every time."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GROUPS = 6  # at most, as many as there are colours
APART = 0.1  # the least silhouette of groups that are worth showing


def unit(vectors: Array) -> Array:
    """Each of length 1; a vector of nothing stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


def compare(vectors: Array) -> Array:
    """The cosine of each two, (n, n)."""
    ones = unit(vectors.astype(np.float64))
    return np.asarray(np.clip(ones @ ones.T, -1.0, 1.0))


def project(vectors: Array, like: Array | None = None) -> tuple[Array, Array]:
    """Principal components: the places (n, 2), and the share of the variance that each axis holds.

    An axis has no direction of its own: it points as in the map `like`, else to where its largest weight is positive.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    u, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    places, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    total = float((sizes**2).sum())
    # What rounding alone spreads is no axis: uses without context are the same vector.
    scale = np.abs(vectors).max(initial=0.0) * np.sqrt(vectors.size)
    for k in range(min(2, len(sizes))):
        if sizes[k] <= 1e-6 * scale:
            continue
        along = u[:, k] * sizes[k]
        sign = np.sign(axes[k][np.argmax(np.abs(axes[k]))])
        if like is not None and abs(along @ like[:, k]) > 1e-9:
            sign = np.sign(along @ like[:, k])
        places[:, k], shares[k] = sign * along, sizes[k] ** 2 / total
    return places, shares


def project_layers(vectors: Array) -> tuple[Array, Array]:
    """Maps of (n, layers, width) vectors, (layers, n, 2), from the last layer down, each turned as the one above it."""
    maps: list[tuple[Array, Array]] = []
    for layer in reversed(range(vectors.shape[1])):
        maps.insert(0, project(vectors[:, layer], maps[0][0] if maps else None))
    return np.stack([places for places, _ in maps]), np.stack([shares for _, shares in maps])


def group(cosines: Array) -> Array:
    """The number of the group of each, from 0: as many groups, up to six, as lie best apart; all 0 where none do.

    Agglomerative with average linkage on cosine distances; the number is chosen by the mean silhouette.
    """
    count = len(cosines)
    distances = np.maximum(1.0 - cosines, 0.0)
    best, chosen = APART, np.zeros(count, dtype=np.int64)
    if distances.max(initial=0.0) < 1e-4:  # the same but for rounding
        return chosen
    for k, labels in cut_tree(distances, GROUPS):
        if 2 <= k < count:
            score = silhouette(distances, labels)
            if score > best + 1e-12:
                best, chosen = score, labels
    return chosen


def cut_tree(distances: Array, most: int) -> list[tuple[int, Array]]:
    """The groups that average linkage leaves when there are `most`, … 2 and 1, numbered by their first member."""
    count = len(distances)
    members = [[i] for i in range(count)]
    apart = distances.astype(np.float64).copy()
    np.fill_diagonal(apart, np.inf)
    found = []
    while True:
        alive = [some for some in members if some]
        if len(alive) <= most:
            labels = np.zeros(count, dtype=np.int64)
            for number, some in enumerate(sorted(alive, key=min)):
                labels[some] = number
            found.append((len(alive), labels))
        if len(alive) <= 1:
            return found
        a, b = sorted(divmod(int(np.argmin(apart)), count))
        one, other = len(members[a]), len(members[b])
        merged = (one * apart[a] + other * apart[b]) / (one + other)
        apart[a], apart[:, a] = merged, merged
        apart[a, a] = np.inf
        apart[b], apart[:, b] = np.inf, np.inf
        members[a], members[b] = members[a] + members[b], []


def silhouette(distances: Array, labels: Array) -> float:
    """How much nearer each is to its own group than to the next one, on average, from -1 to 1 (Rousseeuw 1987)."""
    names, counts = np.unique(labels, return_counts=True)
    sums = np.stack([distances[:, labels == name].sum(axis=1) for name in names], axis=1)  # (n, groups)
    own = np.searchsorted(names, labels)
    rows = np.arange(len(labels))
    inside = sums[rows, own] / np.maximum(counts[own] - 1, 1)
    means = sums / counts
    means[rows, own] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    scores = np.where((counts[own] > 1) & (larger > 0), (outside - inside) / np.where(larger > 0, larger, 1.0), 0.0)
    return float(scores.mean())
