"""The transformer's arithmetic, against plain statements of what it should be."""

import dataclasses

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from infra.instances import INSTANCE_TYPES
from training.core.adamw import adamw, learning_rate
from training.core.capabilities import require_capabilities
from training.core.exits import ConfigurationError
from training.core.flops import TransformerRun, flops_per_token, peak_of
from training.core.process import Processes
from training.core.transformer import Attention, Shape, Transformer, initialise, next_token_loss, rotate, rotation_of
from training.core.transformer_settings import TransformerSettings

SHAPE = Shape(layers=2, hidden=32, heads=4, kv_heads=2, vocab=64, sequence=16)
CPU = torch.device("cpu")


def transformer(shape: Shape = SHAPE, seed: int = 0) -> Transformer:
    model = Transformer(shape)
    initialise(model, seed=seed)
    return model


def tokens(num_samples: int = 3) -> torch.Tensor:
    return torch.randint(SHAPE.vocab, (num_samples, SHAPE.sequence), generator=torch.Generator().manual_seed(1))


def test_rotation_is_multiplication_by_a_complex_number_of_each_position() -> None:
    x = torch.randn(2, 4, 16, 8, generator=torch.Generator().manual_seed(0))
    pairs = torch.complex(x[..., :4], x[..., 4:])
    for position in range(16):
        for pair in range(4):
            angle = torch.tensor(position * 10_000 ** (-2 * pair / 8))
            pairs[:, :, position, pair] *= torch.polar(torch.tensor(1.0), angle)
    expected = torch.cat((pairs.real, pairs.imag), dim=-1)
    torch.testing.assert_close(rotate(x, rotation_of(16, 8, CPU)), expected)


def test_rotated_products_depend_on_the_distance_alone() -> None:
    query, key = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    rotation = rotation_of(16, 8, CPU)
    queries, keys = rotate(query.expand(16, 8), rotation), rotate(key.expand(16, 8), rotation)
    products = queries @ keys.T
    for distance in range(-15, 16):
        along = products.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along))


def test_grouped_attention_is_plain_attention_with_each_key_and_value_repeated() -> None:
    attention = Attention(SHAPE)
    x = torch.randn(3, SHAPE.sequence, SHAPE.hidden, generator=torch.Generator().manual_seed(0))
    rotation = rotation_of(SHAPE.sequence, SHAPE.head_size, CPU)

    def head(projection: torch.nn.Linear, number: int) -> torch.Tensor:
        rows = slice(number * SHAPE.head_size, (number + 1) * SHAPE.head_size)
        return x @ projection.weight[rows].T

    mixed = []
    future = torch.ones(SHAPE.sequence, SHAPE.sequence).triu(1).bool()
    for number in range(SHAPE.heads):
        of_key = number // (SHAPE.heads // SHAPE.kv_heads)
        query, key = rotate(head(attention.query, number), rotation), rotate(head(attention.key, of_key), rotation)
        scores = (query @ key.transpose(1, 2) / SHAPE.head_size**0.5).masked_fill(future, -torch.inf)
        mixed.append(scores.softmax(-1) @ head(attention.value, of_key))
    torch.testing.assert_close(attention(x, rotation), attention.output(torch.cat(mixed, dim=-1)))


def test_no_token_sees_the_ones_after_it() -> None:
    model, earlier = transformer(), tokens()
    later = earlier.clone()
    later[:, 9:] = (later[:, 9:] + 1) % SHAPE.vocab
    with torch.no_grad():
        there, here = model(earlier), model(later)
    torch.testing.assert_close(there[:, :9], here[:, :9])
    assert not torch.isclose(there[:, 9:], here[:, 9:]).all(-1).any()


def test_an_untrained_model_knows_nothing() -> None:
    loss = next_token_loss(transformer()(tokens()), tokens().roll(-1, dims=1))
    assert loss.item() == pytest.approx(torch.tensor(SHAPE.vocab).log().item(), abs=0.1)


def test_weights_are_those_of_their_seed_and_name() -> None:
    first, again, other = (dict(transformer(seed=seed).named_parameters()) for seed in (0, 0, 1))
    for name, weights in first.items():
        torch.testing.assert_close(weights, again[name], rtol=0, atol=0)
        assert weights.ndim == 1 or not torch.isclose(weights, other[name]).all()
    assert not torch.equal(first["blocks.0.attention.query.weight"], first["blocks.1.attention.query.weight"])
    assert first["blocks.0.feed_forward.up.weight"].std().item() == pytest.approx(0.02, rel=0.1)
    assert first["blocks.0.feed_forward.down.weight"].std().item() == pytest.approx(0.01, rel=0.1)  # 0.02 / √(2 × 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"heads": 3}, "--hidden 128 cannot be cut into --heads 3 of an even size: take a multiple of 6, such as 132"),
        ({"kv_heads": 3}, "--heads 4 is no multiple of --kv-heads 3"),
        ({"layers": 0}, "--layers 0: must be at least 1"),
        ({"lr": float("nan")}, "--lr nan: must be above 0"),
        ({"min_lr": 0.1}, "--min-lr 0.1: must be between 0 and --lr 0.001"),
        ({"warmup_steps": -1}, "--warmup-steps -1: must be 0 or above"),
        ({"weight_decay": -0.1}, "--weight-decay -0.1: must be 0 or above"),
        ({"clip_grad": 0.0}, "--clip-grad 0.0: must be above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(flags: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        TransformerSettings(**flags)
    assert message in str(refused.value)


def test_compiling_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TransformerSettings(compile=True)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ConfigurationError, match=r"--compile: this machine has no C\+\+ compiler"):
        require_capabilities(settings, CPU)
    monkeypatch.setenv("CXX", "true")
    require_capabilities(settings, CPU)


def test_the_learning_rate_rises_in_a_line_and_falls_in_half_a_cosine() -> None:
    settings = TransformerSettings(steps=110, lr=1.0, min_lr=0.2, warmup_steps=10)
    rates = {step: learning_rate(step, settings) for step in (1, 5, 10, 35, 60, 85, 110)}
    expected = {1: 0.1, 5: 0.5, 10: 1.0, 35: 0.6 + 0.4 * 0.5**0.5, 60: 0.6, 85: 0.6 - 0.4 * 0.5**0.5, 110: 0.2}
    assert rates == pytest.approx(expected)
    without = dataclasses.replace(settings, min_lr=None, warmup_steps=None)
    assert learning_rate(2, without) == 1.0  # 110 / 50
    assert learning_rate(110, without) == pytest.approx(0.1)
    assert learning_rate(1, dataclasses.replace(settings, warmup_steps=0)) <= 1.0


def test_only_matrices_decay() -> None:
    model = transformer()
    before = {name: weights.detach().clone() for name, weights in model.named_parameters()}
    optimizer = adamw(model, TransformerSettings(lr=0.5, weight_decay=0.1))
    for weights in model.parameters():
        weights.grad = torch.zeros_like(weights)
    optimizer.step()
    for name, weights in model.named_parameters():
        torch.testing.assert_close(weights, before[name] * (1.0 if weights.ndim == 1 else 1 - 0.5 * 0.1))


def test_the_formula_of_flops_counts_what_is_computed() -> None:
    """In the kernel that computes attention in full: others leave out the masked half, which the formula counts."""
    model = transformer()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        next_token_loss(model(tokens()), tokens()).backward()
    assert counter.get_total_flops() == flops_per_token(model) * tokens().numel()


def test_peaks_are_those_of_the_instance_table() -> None:
    gpus = {row.accelerator for row in INSTANCE_TYPES.values() if row.accelerator and row.accelerator.kind == "gpu"}
    for gpu in gpus:
        peak = peak_of(f"NVIDIA {gpu.name}-SXM4-80GB")
        assert peak == (gpu.bf16_tflops and gpu.bf16_tflops * 1e12), gpu.name


def test_slower_variants_and_unknown_devices_have_no_peak() -> None:
    assert peak_of("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_of("NVIDIA H100 PCIe") is None
    assert peak_of("NVIDIA H200 NVL") is None
    assert peak_of("NVIDIA GeForce RTX 4090") is None


def test_mfu_is_reported_where_the_peak_is_known(alone: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.core.flops.peak_flops_per_s", lambda device: 1e6)
    lines: dict[str, dict[str, float]] = {}
    for precision in ("bf16", "fp32"):
        model = transformer()
        settings = TransformerSettings(steps=1, global_batch=4, precision=precision)
        optimizer = adamw(model, settings)
        run = TransformerRun(
            settings, alone, model=model, optimizer=optimizer, num_samples=8, flops_per_token=flops_per_token(model)
        )
        for _ in run.steps():
            run.log(torch.zeros(()), tokens=64)
        assert run._progress
        lines[precision] = run._progress.last
    assert lines["bf16"]["mfu"] == pytest.approx(lines["bf16"]["tokens_per_s"] * flops_per_token(model) / 1e6, rel=1e-3)
    assert lines["fp32"]["mfu"] is None


def test_recomputed_activations_give_the_same_gradients() -> None:
    kept, recomputed = transformer(), Transformer(SHAPE, recompute=True)
    initialise(recomputed, seed=0)
    for model in (kept, recomputed):
        functional.cross_entropy(model(tokens()).flatten(0, 1), tokens().flatten()).backward()
    for one, other in zip(kept.parameters(), recomputed.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
