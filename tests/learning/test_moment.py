"""Images that change, and scores of a moment."""

import numpy as np
import pytest
import torch

from dlion_sim.learning import Evaluator, Layout, Moment, Replica, flatten, model_for
from dlion_sim.learning.datasets.scikit_learn import digits
from dlion_sim.learning.moment import changed

pytestmark = pytest.mark.usefixtures("single_threaded")

CPU = torch.device("cpu")
NONE = np.zeros(2)


@pytest.fixture
def images():
    return torch.randint(0, 256, (2, 3, 6, 6), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_a_quarter_turn_is_counter_clockwise_and_of_each_image_by_itself(images):
    turned = changed(images, NONE, np.array([90.0, 0.0]), 0, 255)
    assert torch.equal(turned[0], torch.rot90(images[0], 1, dims=(1, 2)))
    assert torch.equal(turned[1], images[1])
    assert turned.dtype == images.dtype


def test_corners_of_turned_images_have_the_minimum(images):
    low = changed(images.float() + 5, NONE, np.array([45.0, 45.0]), 5, 260)
    assert low[:, :, 0, 0].tolist() == [[5.0] * 3] * 2
    wide = changed(torch.ones(1, 1, 4, 8), np.zeros(1), np.array([90.0]), 0, 1)
    assert wide[0, 0].sum() == 16, "a turned wide image has its middle square left"


def test_brighter_is_added_and_stays_in_range(images):
    brighter = changed(images, np.array([0.4, -0.4]), NONE, 0, 255)
    expected = torch.stack([images[0].int() + 102, images[1].int() - 102]).clamp(0, 255)
    assert torch.equal(brighter.int(), expected)


@pytest.fixture
def scored():
    data = digits()
    model = model_for("mlp", data, 0)
    evaluator = Evaluator(model, data, CPU, threads=1)
    yield data, evaluator, Replica(Layout.of(model), flatten(model), learning_rate=0.1)
    evaluator.close()


def test_with_the_test_sets_shares_a_moments_score_is_the_plain_one(scored):
    data, evaluator, replica = scored
    shares = np.bincount(data.test_targets, minlength=10) / len(data.test_targets)
    (plain,), (then,) = (evaluator.evaluate([replica], None, at) for at in (None, Moment(shares, lambda it: it)))
    assert then.metric == pytest.approx(plain.metric)
    assert then.loss == pytest.approx(plain.loss)
    assert sum(each.samples for each in then.classes) == len(data.test_targets)
    assert [each.share for each in then.classes] == pytest.approx(shares)


def test_a_moments_classes_are_weighted_by_their_shares(scored):
    _, evaluator, replica = scored
    shares = np.array([0.7, 0.3, *[0.0] * 8])
    (score,) = evaluator.evaluate([replica], None, Moment(shares, lambda it: it))
    accuracies = [each.accuracy for each in score.classes]
    assert len(accuracies) == 10
    assert score.metric == pytest.approx(0.7 * accuracies[0] + 0.3 * accuracies[1])


def test_a_moments_inputs_are_changed(scored):
    _, evaluator, replica = scored
    dark = Moment(np.full(10, 0.1), lambda images: torch.zeros_like(images))
    (score,) = evaluator.evaluate([replica], None, dark)
    assert sorted(each.accuracy for each in score.classes) == [0.0] * 9 + [1.0], "all images are one"


def test_classes_without_samples_are_not_counted():
    score = Moment(np.array([0.5, 0.25, 0.25]), lambda it: it).score([0, 0, 0, 4, 3, 4, 2, 0, 4])
    assert (score.metric, score.loss) == (0.375, 0.75)
    assert [each[:3] for each in score.classes] == [(1, 0.25, 4), (2, 0.25, 4)]


def test_the_score_of_samples_is_their_plain_one(scored):
    """What a worker gets for its arrivals, by a loop over them."""
    data, evaluator, replica = scored
    model = model_for("mlp", data, 0)
    samples = np.arange(7, 250, 2)
    with torch.no_grad():
        right = model(data.transform(data.train_inputs[samples])).argmax(dim=1) == data.train_targets[samples]
    assert evaluator.score(replica, samples).metric == pytest.approx(right.float().mean().item())
