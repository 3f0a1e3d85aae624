"""Maps, groups and silhouettes against scikit-learn and scipy."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import cosine_similarity

from bertsmith.inspection.sense_maps import compare, cut_tree, group, project, project_layers, silhouette


@pytest.fixture
def vectors():
    generator = np.random.default_rng(5)
    centres = generator.normal(size=(3, 20)) * 3
    return (centres[np.arange(24) % 3] + generator.normal(size=(24, 20))).astype(np.float32)


def same_groups(ours, theirs):
    """The same but for their numbers."""
    return np.array_equal(ours[:, None] == ours[None], theirs[:, None] == theirs[None])


def test_cosines(vectors):
    assert np.allclose(compare(vectors), cosine_similarity(vectors.astype(np.float64)), atol=1e-12)


def test_map_is_that_of_principal_components(vectors):
    theirs = PCA(2).fit(vectors.astype(np.float64))
    places, shares = project(vectors)
    assert np.allclose(np.abs(places), np.abs(theirs.transform(vectors.astype(np.float64))), atol=1e-9)
    assert np.allclose(shares, theirs.explained_variance_ratio_)


def test_an_axis_points_one_way_whatever_the_order(vectors):
    order = np.random.default_rng(0).permutation(len(vectors))
    assert np.allclose(project(vectors)[0][order], project(vectors[order])[0])


def test_maps_of_layers_are_turned_alike(vectors):
    turned = np.stack([-vectors + 0.01, vectors], axis=1)  # the same map, mirrored
    places, _ = project_layers(turned)
    assert ((places[0] * places[1]).sum(axis=0) > 0).all()


def test_uses_that_are_the_same_lie_on_one_spot():
    places, shares = project(np.ones((5, 8), np.float32))
    assert not places.any() and not shares.any()
    assert not group(compare(np.ones((5, 8), np.float32))).any()
    assert project(np.ones((1, 8)))[0].shape == (1, 2)


def test_groups_are_those_of_average_linkage(vectors):
    distances = 1 - compare(vectors)
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances, checks=False), method="average")
    found = dict(cut_tree(distances, 6))
    assert sorted(found) == [1, 2, 3, 4, 5, 6]
    for count, labels in found.items():
        assert same_groups(labels, fcluster(tree, count, criterion="maxclust"))


def test_silhouette(vectors):
    distances = np.maximum(1 - compare(vectors), 0)
    np.fill_diagonal(distances, 0)
    for labels in (np.arange(24) % 3, np.arange(24) % 5, np.array([0] * 23 + [1])):
        assert silhouette(distances, labels) == pytest.approx(silhouette_score(distances, labels, metric="precomputed"))


def test_as_many_groups_as_there_are(vectors):
    assert same_groups(group(compare(vectors)), np.arange(24) % 3)
