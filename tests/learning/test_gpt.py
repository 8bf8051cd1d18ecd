"""GPT against nanoGPT's description: sizes, initial values, causality, and an independent computation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from dlion_sim.learning import build, training_flops
from dlion_sim.learning.models.gpt import Gpt

pytestmark = pytest.mark.usefixtures("single_threaded")

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 17, 16, 2, 4, 32


def tiny(seed: int = 0) -> Gpt:
    model = build("gpt", (CONTEXT,), VOCABULARY, seed, layers=LAYERS, heads=HEADS, width=WIDTH)
    assert isinstance(model, Gpt)
    return model


def tokens(batch: int = 3, length: int = CONTEXT) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(0))


def with_torchs_layers(model: Gpt) -> nn.Module:
    """PyTorch's own transformer with the same parameters."""
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    reference = nn.TransformerEncoder(layer, LAYERS, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    names = {
        "attention_norm": "norm1",
        "attention.query_key_value.": "self_attn.in_proj_",
        "attention.output": "self_attn.out_proj",
        "mlp_norm": "norm2",
        "mlp.hidden": "linear1",
        "mlp.output": "linear2",
        "blocks": "layers",
    }
    state = {}
    for name, value in model.state_dict().items():
        if not name.startswith(("token_", "position_")):
            for ours, torchs in names.items():
                name = name.replace(ours, torchs)
            state[name] = value
    reference.load_state_dict(state)
    return reference


def test_it_computes_what_torchs_transformer_does():
    model = tiny()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    reference, given = with_torchs_layers(model), tokens()
    embedded = model.token_embedding_head.weight[given] + model.position_embedding.weight
    mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
    expected = reference(embedded, mask=mask, is_causal=True) @ model.token_embedding_head.weight.T
    torch.testing.assert_close(model(given), expected, rtol=1e-4, atol=1e-5)


def test_no_token_sees_a_later_one():
    model, given = tiny(), tokens(1)
    changed = given.clone()
    changed[0, 9] = (changed[0, 9] + 1) % VOCABULARY
    before, after = model(given), model(changed)
    assert torch.equal(before[0, :9], after[0, :9])
    assert not torch.equal(before[0, 9:], after[0, 9:])


def test_positions_distinguish_equal_tokens_of_short_sequences():
    model = tiny()
    same = model(torch.zeros(1, 5, dtype=torch.int64))
    assert same.shape == (1, 5, VOCABULARY)
    assert not torch.equal(same[0, 0], same[0, 1])


def test_gpt2s_smallest_has_as_many_parameters_as_nanogpt_counts():
    with torch.device("meta"):
        model = Gpt(50257, 1024, layers=12, heads=12, width=768)
    assert sum(each.numel() for each in model.parameters()) == 124_439_808


def test_initial_values_are_nanogpts():
    model = build("gpt", (64,), 1000, 0, layers=8, heads=4, width=128)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert bool((parameter == (0 if name.endswith("bias") else 1)).all()), name
        else:
            deviation = 0.02 / math.sqrt(16) if name.endswith("output.weight") else 0.02
            parameter = parameter.detach()
            assert float(parameter.std()) == pytest.approx(deviation, rel=0.03), name
            assert float(parameter.mean()) == pytest.approx(0, abs=deviation / 20), name


@pytest.mark.parametrize("layers", [1, 3])
def test_operations_are_those_of_its_matrix_products(layers):
    """Forward once and backward twice, counted by hand."""
    model = build("gpt", (CONTEXT,), VOCABULARY, 0, layers=layers, heads=HEADS, width=WIDTH)
    dense = 4 * WIDTH * WIDTH + 2 * WIDTH * 4 * WIDTH  # query, key, value, output; hidden and output of the MLP
    attention = 2 * CONTEXT * WIDTH  # scores, and sums of values
    forward = 2 * CONTEXT * (layers * (dense + attention) + WIDTH * VOCABULARY)
    assert training_flops(model, tokens(1)) == 3 * forward
