"""GPT: a transformer that tells the next token."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

_DEVIATION = 0.02
_MLP = 4
"""How much wider the hidden layer of a block is than the block."""


def gpt(
    input_shape: tuple[int, ...], vocabulary: int, *, layers: int = 4, heads: int = 4, width: int = 128
) -> nn.Module:
    """A transformer as GPT-2's: learned positions, pre-norm blocks, GELU, and a head tied to the embedding.

    Layers and initial values are those of karpathy/nanoGPT, model.py. Without dropout, so that a gradient is a function
    of parameters and samples alone. `input_shape` has the number of tokens that it takes, at most; `width` is a
    multiple of `heads`.
    """
    (context,) = input_shape
    return Gpt(vocabulary, context, layers, heads, width)


class Gpt(nn.Module):
    """Of tokens int64 [B, T], the logits [B, T, V] of the token after each."""

    def __init__(self, vocabulary: int, context: int, layers: int, heads: int, width: int) -> None:
        super().__init__()
        self.token_embedding_head = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # What a block adds is the less the more of them add up (Radford et al., 2019).
                adds = name.endswith("output.weight")
                nn.init.normal_(parameter, std=_DEVIATION / math.sqrt(2 * layers) if adds else _DEVIATION)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        """Raises IndexError for more tokens than the context."""
        places = torch.arange(tokens.shape[-1], device=tokens.device)
        hidden = self.blocks(self.token_embedding_head(tokens) + self.position_embedding(places))
        return linear(self.norm(hidden), self.token_embedding_head.weight)


class Block(nn.Module):
    """Of [B, T, W], the same shape: attention, then a layer for each token, each added to what it is given."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, hidden: Tensor) -> Tensor:
        attended: Tensor = hidden + self.attention(self.attention_norm(hidden))
        outputs: Tensor = attended + self.mlp(self.mlp_norm(attended))
        return outputs


class CausalAttention(nn.Module):
    """Self-attention by which a token sees itself and those before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Of [B, T, W], the same shape."""
        by_head = self.query_key_value(hidden).unflatten(-1, (3, self._heads, -1))
        queries, keys, values = by_head.movedim(-3, 0).transpose(-3, -2)
        # Written out: torch's fused attention is neither vectorised over replicas nor, on a GPU, always the same.
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        seen = scores.masked_fill(later, -math.inf).softmax(dim=-1) @ values
        outputs: Tensor = self.output(seen.transpose(-3, -2).flatten(-2))
        return outputs


class Mlp(nn.Module):
    """The layer for each token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, _MLP * width)
        self.output = nn.Linear(_MLP * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Of [..., W], the same shape."""
        outputs: Tensor = self.output(gelu(self.hidden(hidden)))
        return outputs
