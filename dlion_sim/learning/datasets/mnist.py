"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28 in 10 classes, in the IDX format."""

from __future__ import annotations

import gzip

import numpy as np
import torch
from torch import Tensor

from dlion_sim.learning.datasets.dataset import Dataset, NormalisedImages
from dlion_sim.learning.datasets.source import Source
from dlion_sim.learning.tasks import Classification

MNIST = Source(
    folder="mnist",
    md5={
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    url="https://ossci-datasets.s3.amazonaws.com/mnist",
)
FASHION_MNIST = Source(
    folder="fashion-mnist",
    md5={
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
)


def mnist() -> Dataset:
    """Handwritten digits (LeCun et al., 1998): 60,000 training and 10,000 test images [1, 28, 28]."""
    return _dataset("mnist", MNIST, mean=0.1307, std=0.3081)


def fashion_mnist() -> Dataset:
    """Pieces of clothing (Xiao et al., 2017): 60,000 training and 10,000 test images [1, 28, 28]."""
    return _dataset("fashion_mnist", FASHION_MNIST, mean=0.2860, std=0.3530)


def _dataset(name: str, source: Source, mean: float, std: float) -> Dataset:
    files = source.read()
    return Dataset(
        name=name,
        train_inputs=_idx(files["train-images-idx3-ubyte.gz"]).unsqueeze(1),
        train_targets=_idx(files["train-labels-idx1-ubyte.gz"]).long(),
        test_inputs=_idx(files["t10k-images-idx3-ubyte.gz"]).unsqueeze(1),
        test_targets=_idx(files["t10k-labels-idx1-ubyte.gz"]).long(),
        task=Classification(classes=10),
        transform=NormalisedImages(mean=(mean,), std=(std,)),
    )


def _idx(file: bytes) -> Tensor:
    """The uint8 array of a compressed IDX file: a magic number that ends in the rank, big-endian sizes, entries."""
    content = bytearray(gzip.decompress(file))
    rank = content[3]
    shape = np.frombuffer(content, ">u4", count=rank, offset=4).tolist()
    return torch.frombuffer(content, dtype=torch.uint8, offset=4 + 4 * rank).view(shape)
