"""Small networks of known blocks, with every size that an outline reads as an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archive.architecture.graph import Architecture, Layer
from tests.support.networks.torch_nets import layer, network


class Plan:
    """Layers and edges so far; each method adds layers and returns the last one's position."""

    def __init__(self, given: str) -> None:
        self.given = given
        self.inner: list[Layer] = []
        self.edges: list[tuple[int, ...]] = []

    def add(self, op: str, *tails: int, step: int = 1, **attributes: Any) -> int:
        self.inner.append(layer(op, step, **attributes))
        head = len(self.inner)
        either = op in ("add", "mul")
        arguments: dict[int, list[int]] = {}
        for number, tail in enumerate(tails):
            arguments.setdefault(tail, []).append(0 if either else number)

        for tail, numbers in arguments.items():
            self.edges.append((tail, head, *numbers))

        if not tails:
            self.edges.append((0, head))

        return head

    def conv(
        self,
        tail: int,
        channels: tuple[int, int],
        kernel: int = 1,
        step: int = 1,
        activation: str = "relu",
        groups: int = 1,
    ) -> int:
        before, after = channels
        settings: dict[str, Any] = {"groups": groups} if groups > 1 else {}
        last = self.add(
            "convolution",
            tail,
            step=step,
            weight=[after, before // groups, kernel, kernel],
            padding=kernel // 2,
            **settings,
        )
        sides = [after]
        last = self.add(
            "batch_norm", last, weight=sides, bias=sides, running_mean=sides, running_var=sides
        )
        return self.add(activation, last) if activation else last

    def linear(self, tail: int, before: int, after: int) -> int:
        return self.add("linear", tail, weight=[after, before], bias=[after])

    def norm(self, tail: int, width: int) -> int:
        return self.add(
            "native_layer_norm", tail, normalized_shape=[width], weight=[width], bias=[width]
        )

    def gate(self, tail: int, channels: int, middle: int) -> int:
        last = self.add("mean", tail, dim=[2, 3], keepdim=True)
        last = self.add("convolution", last, weight=[middle, channels, 1, 1], bias=[middle])
        last = self.add("relu", last)
        last = self.add("convolution", last, weight=[channels, middle, 1, 1], bias=[channels])
        last = self.add("sigmoid", last)
        return self.add("mul", tail, last)

    def end(self, *tails: int) -> Architecture:
        last = len(self.inner) + 1
        ends = [(tail, last, argument) for argument, tail in enumerate(tails)]
        return network(self.inner, [*self.edges, *ends], self.given)


def residual_net(
    depths: Sequence[int] = (2, 2),
    width: int = 8,
    kernel: int = 3,
    activation: str = "relu",
    ratio: int = 4,
    *,
    deep: bool = False,
    pooled: bool = False,
    gated: bool = False,
    groups: int = 1,
) -> Architecture:
    """A network of bottlenecks, as ResNet-50; `deep` and `pooled` make it ResNet-50-D."""
    plan = Plan("3x32x32")
    if deep:
        last = plan.conv(0, (3, width), 3, 2, activation)
        last = plan.conv(last, (width, width), 3, 1, activation)
    else:
        last = plan.conv(0, (3, width), 7, 2, activation)

    last = plan.add("max_pool2d_with_indices", last, step=2, kernel_size=3, padding=1)
    before = width
    for stage, depth in enumerate(depths):
        inner = width * 2**stage
        after = inner * ratio
        for number in range(depth):
            step = 2 if stage and not number else 1
            main = plan.conv(last, (before, inner), 1, 1, activation)
            main = plan.conv(main, (inner, inner), kernel, step, activation, groups)
            main = plan.conv(main, (inner, after), 1, 1, "")
            if gated:
                main = plan.gate(main, after, after // 4)

            short = last
            if pooled and step > 1:
                short = plan.add("avg_pool2d", short, step=2, kernel_size=2)
                short = plan.conv(short, (before, after), 1, 1, "")
            elif before != after or step > 1:
                short = plan.conv(short, (before, after), 1, step, "")

            last = plan.add(activation, plan.add("add", main, short))
            before = after

    last = plan.add("mean", last, dim=[2, 3])
    return plan.end(plan.linear(last, before, 10))


def mobile_net(kernel: int = 3, expansion: int = 6, *, gated: bool = False) -> Architecture:
    """A network of inverted bottlenecks, the first of each stage without a shortcut."""
    plan = Plan("3x32x32")
    last = plan.conv(0, (3, 8), 3, 2, "silu")
    before = 8
    for after in (16, 24):
        for number in range(2):
            inner = before * expansion
            main = plan.conv(last, (before, inner), 1, 1, "silu")
            main = plan.conv(main, (inner, inner), kernel, 1 + (not number), "silu", inner)
            if gated:
                main = plan.gate(main, inner, 2)

            main = plan.conv(main, (inner, after), 1, 1, "")
            last = plan.add("add", main, last) if number else main
            before = after

    last = plan.add("mean", last, dim=[2, 3])
    return plan.end(plan.linear(last, before, 10))


def language_net(
    depth: int = 3,
    width: int = 16,
    heads: int = 4,
    kv_heads: int = 4,
    hidden: int = 64,
    activation: str = "gelu",
    *,
    post: bool = False,
    products: bool = False,
) -> Architecture:
    """A transformer over tokens; `products` writes attention as two products with a softmax."""
    plan = Plan("12:int64")
    size = width // heads
    last = plan.add("embedding", 0, weight=[50, width])
    plan.edges[-1] = (0, last, 1)
    for _ in range(depth):
        start = last if post else plan.norm(last, width)
        values = []
        for count in (heads, kv_heads, kv_heads):
            value = plan.linear(start, width, count * size)
            value = plan.add("view", value, size=[-1, 12, count, size])
            value = plan.add("permute", value, dims=[0, 2, 1, 3])
            if count < heads:
                value = plan.add("unsqueeze", value, dim=2)
                value = plan.add("expand", value, size=[-1, -1, heads // count, -1, -1])
                value = plan.add("view", value, size=[-1, heads, 12, size])

            values.append(value)

        mixed = _mixed(plan, values, heads, size, products)
        mixed = plan.add("permute", mixed, dims=[0, 2, 1, 3])
        mixed = plan.add("view", mixed, size=[-1, 12, width])
        last = plan.add("add", plan.linear(mixed, width, width), last)
        last = plan.norm(last, width) if post else last
        start = last if post else plan.norm(last, width)
        main = plan.add(activation, plan.linear(start, width, hidden))
        last = plan.add("add", plan.linear(main, hidden, width), last)
        last = plan.norm(last, width) if post else last

    last = last if post else plan.norm(last, width)
    return plan.end(plan.linear(last, width, 50))


def _mixed(plan: Plan, values: Sequence[int], heads: int, size: int, products: bool) -> int:
    query, key, value = values
    if not products:
        return plan.add("scaled_dot_product_attention", query, key, value)

    flat = [plan.add("view", each, size=[f"{heads}*batch", "12", str(size)]) for each in values]
    turned = plan.add("permute", flat[1], dims=[0, 2, 1])
    weights = plan.add("_softmax", plan.add("bmm", flat[0], turned), dim=-1, half_to_float=False)
    return plan.add("view", plan.add("bmm", weights, flat[2]), size=[-1, heads, 12, size])
