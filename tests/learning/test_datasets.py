from __future__ import annotations

import functools
import hashlib
import io
import pickle
import shutil
import tarfile
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, load
from dlion_sim.learning.datasets import cifar
from dlion_sim.learning.datasets.source import Source
from dlion_sim.learning.tasks import Classification

CONTENT = {"one": b"first file", "two": b"second file"}
MD5 = {name: hashlib.md5(content).hexdigest() for name, content in CONTENT.items()}


@pytest.mark.parametrize(
    ("name", "folder", "train", "test", "shape"),
    [
        ("digits", None, 1437, 360, (1, 8, 8)),
        ("cifar10", "cifar-10-batches-py", 50_000, 10_000, (3, 32, 32)),
        ("fashion_mnist", "fashion-mnist", 60_000, 10_000, (1, 28, 28)),
        ("mnist", "mnist", 60_000, 10_000, (1, 28, 28)),
    ],
)
def test_real_data(name, folder, train, test, shape, published):
    if folder:
        published(folder)
    dataset = load(name)
    assert (dataset.name, dataset.input_shape, dataset.task.outputs) == (name, shape, 10)
    assert dataset.train_inputs.shape == (train, *shape)
    assert dataset.test_inputs.shape == (test, *shape)
    assert dataset.train_inputs.dtype == dataset.test_inputs.dtype == torch.uint8
    assert dataset.train_targets.dtype == dataset.test_targets.dtype == torch.int64
    for labels, count in ((dataset.train_targets, train), (dataset.test_targets, test)):
        histogram = labels.bincount()
        assert histogram.sum() == count
        assert len(histogram) == 10
        assert histogram.min() > 0.85 * count / 10
    assert int(dataset.train_inputs.max()) == dataset.transform.scale
    # Of all pixels by how many there are of each of 256 levels, which takes less time and memory.
    counts = torch.stack([channel.flatten().bincount(minlength=256) for channel in dataset.train_inputs.unbind(1)])
    levels = torch.arange(256, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, shape[0], 1, 1)
    normal = dataset.transform(levels)[:, :, 0, 0].T.double()
    mean = (counts * normal).sum(dim=1) / counts.sum(dim=1)
    variance = (counts * (normal - mean[:, None]).square()).sum(dim=1) / counts.sum(dim=1)
    torch.testing.assert_close(mean, torch.zeros(shape[0]).double(), rtol=0, atol=2e-3)
    torch.testing.assert_close(variance.sqrt(), torch.ones(shape[0]).double(), rtol=0, atol=2e-3)


def test_digits_are_always_split_alike():
    one, other = load("digits"), load("digits")
    assert torch.equal(one.train_inputs, other.train_inputs)
    assert torch.equal(one.test_targets, other.test_targets)


def test_moving_to_where_the_data_are_shares_them(dataset):
    assert dataset.to(torch.device("cpu")).train_inputs.data_ptr() == dataset.train_inputs.data_ptr()


def test_normalise_leaves_the_images(dataset):
    before = dataset.train_inputs.clone()
    normal = dataset.transform(dataset.train_inputs)
    assert normal.dtype == torch.float32
    assert torch.equal(dataset.train_inputs, before)
    torch.testing.assert_close(normal, (before / 255 - 0.5) / 0.25)


def test_unknown_dataset():
    with pytest.raises(
        InputError, match=r"^dataset: no dataset is named 'imagenet'; allowed: cifar10, cifar10_halved, cifar10_unit, "
    ):
        load("imagenet")


def test_damaged_batches_are_never_unpickled(published, tmp_path, monkeypatch):
    shutil.copytree(published("cifar-10-batches-py"), tmp_path / "cifar-10-batches-py")
    monkeypatch.setenv("DLION_DATA", str(tmp_path))
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    batch.chmod(0o644)
    batch.write_bytes(batch.read_bytes()[:1000])
    monkeypatch.setattr("pickle.loads", lambda *_, **__: pytest.fail("unpickled"))
    with pytest.raises(InputError, match="data_batch_3: is truncated or altered: 1000 bytes"):
        load("cifar10")


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A local copy of the files, with no way to download them."""
    folder = tmp_path / "data" / "things"
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv("DLION_DATA", str(folder.parent))
    return folder


def source(url="http://127.0.0.1:9/things", archive_md5=None):
    return Source(folder="things", md5=MD5, url=url, archive_md5=archive_md5)


def test_a_local_copy_is_used(local):
    assert source().read() == CONTENT


@pytest.mark.parametrize("content", [b"second fil", b"second filE", b""])
def test_a_truncated_or_altered_file_is_named(local, content):
    (local / "two").write_bytes(content)
    with pytest.raises(InputError) as caught:
        source().read()
    assert caught.value.file == local / "two"
    found = hashlib.md5(content).hexdigest()
    assert caught.value.problem == (
        f"is truncated or altered: {len(content)} bytes, md5 {found}, expected md5 {MD5['two']}"
    )


def test_a_missing_file_is_named(local):
    (local / "two").unlink()
    with pytest.raises(InputError, match=r"things/two: cannot be read \(No such file"):
        source().read()


def test_dlion_data_must_be_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DLION_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"^dataset: DLION_DATA is .*nowhere', which is not a folder"):
        source().read()


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A web folder holding the files and their tarball, and an empty download cache: the folder and its address."""
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    root = tmp_path / "web"
    root.mkdir()
    with tarfile.open(root / "things.tar.gz", "w:gz") as archive:
        for name, content in CONTENT.items():
            (root / name).write_bytes(content)
            entry = tarfile.TarInfo(f"things/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield root, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_files_are_downloaded_once(web):
    root, address = web
    assert source(address).read() == CONTENT
    for name in CONTENT:
        (root / name).unlink()
    assert source(address).read() == CONTENT


def test_an_archive_is_downloaded_once_and_unpacked_again_where_a_file_went_missing(web, tmp_path):
    root, address = web
    tarball = root / "things.tar.gz"
    things = source(f"{address}/things.tar.gz", hashlib.md5(tarball.read_bytes()).hexdigest())
    assert things.read() == CONTENT
    tarball.unlink()
    (tmp_path / "cache" / "dlion-sim" / "things" / "one").unlink()
    assert things.read() == CONTENT


def test_a_download_of_something_else_is_refused(web):
    root, address = web
    (root / "two").write_bytes(b"not found, but politely")
    with pytest.raises(InputError, match="set DLION_DATA"):
        source(address).read()


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    with pytest.raises(InputError) as caught:
        source().read()
    assert str(caught.value) == (
        "dataset: http://127.0.0.1:9/things cannot be downloaded (ConnectionError); "
        "set DLION_DATA to a folder that holds things/ with one, two"
    )


def test_halved_images_are_means_of_four_pixels(monkeypatch):
    images = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    whole = Dataset(images, torch.zeros(5), images[:2], torch.zeros(2), Classification(10))
    monkeypatch.setattr(cifar, "cifar10", lambda: whole)
    halved = load("cifar10_halved")
    means = torch.nn.functional.avg_pool2d(images.float(), 2)
    assert (halved.train_inputs.dtype, halved.train_inputs.shape) == (torch.uint8, (5, 3, 16, 16))
    assert (halved.train_inputs.float() - means).abs().max() <= 0.5
    assert torch.equal(halved.test_inputs, halved.train_inputs[:2])


def test_unit_images_go_from_0_to_1(monkeypatch):
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 3, 1, 1)
    whole = Dataset(images, torch.zeros(1), images, torch.zeros(1), Classification(10))
    monkeypatch.setattr(cifar, "cifar10", lambda: whole)
    unit = load("cifar10_unit")
    assert unit.transform(unit.train_inputs).flatten().tolist() == pytest.approx([0.0, 0.2, 1.0])


def test_cifar100_is_read_by_its_fine_labels(tmp_path, monkeypatch):
    """From a stand-in for its archive: two small files of the same form."""
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, count in (("train", 6), ("test", 4)):
        images = (np.arange(count * 3072) % 256).astype(np.uint8).reshape(count, 3072)
        labels = {b"fine_labels": [*range(count)], b"coarse_labels": [0] * count}
        (folder / name).write_bytes(pickle.dumps({b"data": images, **labels}))
    md5 = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    published = cifar.CIFAR100
    monkeypatch.setattr(cifar, "CIFAR100", replace(published, md5=md5))
    monkeypatch.setenv("DLION_DATA", str(tmp_path))
    dataset = load("cifar100")
    assert (dataset.name, dataset.input_shape, dataset.task.outputs) == ("cifar100", (3, 32, 32), 100)
    assert dataset.train_targets.tolist() == [0, 1, 2, 3, 4, 5]
    assert dataset.test_inputs.flatten(1)[1].tolist() == [number % 256 for number in range(3072, 6144)]
    monkeypatch.setattr(cifar, "CIFAR100", published)
    monkeypatch.setattr("pickle.loads", lambda *_, **__: pytest.fail("unpickled"))
    with pytest.raises(InputError, match="train: is truncated or altered"):
        load("cifar100")


def test_diabetes_is_standardised_and_always_split_alike():
    one, other = load("diabetes"), load("diabetes")
    assert torch.equal(one.train_inputs, other.train_inputs)
    assert (one.input_shape, one.task.metric.name) == ((10,), "rmse")
    for numbers in (one.train_inputs, one.train_targets[:, None]):
        torch.testing.assert_close(numbers.mean(dim=0), torch.zeros(numbers.shape[1]), rtol=0, atol=1e-5)
        torch.testing.assert_close(numbers.std(dim=0), torch.ones(numbers.shape[1]), rtol=0, atol=1e-5)
    fitted = torch.linalg.lstsq(one.train_inputs, one.train_targets[:, None]).solution
    assert one.task.fault(one.train_targets) is None
    assert (one.test_inputs @ fitted - one.test_targets[:, None]).square().mean().sqrt() < 0.9
