"""Plan of inheritance between decoders: which part of the child continues which of the parent.

The steps of a decoder are its sums: one part with its norms, or a mixer and a feed-forward part in
parallel. The steps of a child must contain the parent's in their order, with changes that keep the
function:

| change                                  | weights that keep the function                        |
|-----------------------------------------|-------------------------------------------------------|
| a step in between                       | zeros where it enters the stream                      |
| a part beside a part, in parallel       | likewise                                              |
| more hidden neurons                     | copies, whose shares of the output sum to one         |
| more key/value heads, a multiple        | copies of each head                                   |
| a larger state                          | zeros where the new numbers are read                  |
| `swiglu` to experts as wide, or wider   | copies: whatever a token chooses, the weights sum to 1 |
| another window, beyond the sequence     | the same                                              |
| a head of its own                       | the embedding's matrix                                |

Nothing else is inherited: other kinds of parts, heads, norms, orders, widths of the stream.
Nothing here needs torch.

Chen, Goodfellow, Shlens: Net2Net (2016). Ainslie et al.: GQA (2023). Komatsuzaki et al.: Sparse
Upcycling (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from archive.architecture.decoders.design import Design
from archive.architecture.decoders.parts import (
    Attention,
    DecoderPart,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.decoders.vocabulary import ALL_MIXERS
from archive.errors import InvalidArchitectureError


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step.

    Attributes:
        name: Name of its module in the network.
        part: Its settings.
        behind: Name of the norm behind it; empty without.
    """

    name: str
    part: DecoderPart
    behind: str

    @property
    def mixes(self) -> bool:
        """Whether it is a mixer."""
        return self.part.op in ALL_MIXERS


@dataclass(frozen=True, slots=True)
class DecoderStep:
    """Parts that are added to the stream together.

    Attributes:
        norm: Name of the norm before them.
        parts: One part, or a mixer and a feed-forward part.
        block: Number of its block, from 1.
    """

    norm: str
    parts: tuple[StepPart, ...]
    block: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step of the child.

    Attributes:
        child: The step.
        parent: The step that it continues; None for one that begins as the identity.
    """

    child: DecoderStep
    parent: DecoderStep | None

    def source_of(self, part: StepPart) -> StepPart | None:
        """Return the part of the parent that a part continues; None for a new one."""
        if self.parent is None:
            return None

        same = [source for source in self.parent.parts if source.mixes == part.mixes]
        return same[0] if same else None


@dataclass(frozen=True, slots=True)
class DecoderPlan:
    """A plan of inheritance.

    Attributes:
        steps: Each step of the child.
        operations: The changes in words.
    """

    steps: tuple[StepPlan, ...]
    operations: tuple[str, ...]


def plan_decoder(parent: Design, child: Design, length: int) -> DecoderPlan:
    """Return how a child keeps its parent's function, with as few changes as possible.

    Args:
        parent: Design in its normal form.
        child: Design in its normal form.
        length: Tokens of a sequence.

    Raises:
        InvalidArchitectureError: It cannot.
    """
    if (parent.width, parent.vocabulary) != (child.width, child.vocabulary):
        raise InvalidArchitectureError("the child has a stream of another width or other tokens")

    if child.tied and not parent.tied:
        raise InvalidArchitectureError("the parent's head has a matrix of its own")

    olds = steps_of(parent)
    plans = _align(olds, steps_of(child), length)
    operations = []
    for plan in plans:
        operations += _words(plan)

    if parent.tied and not child.tied:
        operations.append("a matrix of its own for the head")

    return DecoderPlan(plans, tuple(operations))


def steps_of(design: Design) -> tuple[DecoderStep, ...]:
    """Return the steps of a design in its normal form."""
    steps: list[DecoderStep] = []
    for index, block in enumerate(design.blocks):
        parts = []
        for word, part in (("mixer", block.mixer), ("feed_forward", block.feed_forward)):
            if part is not None:
                name = f"blocks.{index}.{word}"
                behind = f"{name}_norm_behind" if block.norm == "sandwich" else ""
                parts.append(StepPart(name, part, behind))

        if block.parallel:
            steps.append(DecoderStep(f"{parts[0].name}_norm", tuple(parts), index + 1))
            continue

        for placed in parts:
            steps.append(DecoderStep(f"{placed.name}_norm", (placed,), index + 1))

    return tuple(steps)


def _align(
    olds: Sequence[DecoderStep], news: Sequence[DecoderStep], length: int
) -> tuple[StepPlan, ...]:
    """Return the plan with the fewest changes in which all old steps are continued in order.

    Raises:
        InvalidArchitectureError: There is none.
    """
    # best[i]: changes and plans for the first i old steps and the new ones so far.
    best: list[tuple[int, tuple[StepPlan, ...]] | None] = [(0, ())]
    best += [None] * len(olds)
    for new in news:
        following: list[tuple[int, tuple[StepPlan, ...]] | None] = []
        for count in range(len(olds) + 1):
            options = []
            inserted = best[count]
            if inserted is not None:
                options.append((inserted[0] + 1, (*inserted[1], StepPlan(new, None))))

            continued = best[count - 1] if count else None
            if continued is not None:
                changes = _changes(olds[count - 1], new, length)
                if changes is not None:
                    plan = StepPlan(new, olds[count - 1])
                    options.append((continued[0] + changes, (*continued[1], plan)))

            following.append(min(options, key=lambda option: option[0]) if options else None)

        best = following

    complete = best[len(olds)]
    if complete is None:
        raise InvalidArchitectureError("a part of the parent is missing, or cannot be continued")

    return complete[1]


def _changes(old: DecoderStep, new: DecoderStep, length: int) -> int | None:
    """Return the number of parts that change from a step to another; None where it is no step's."""
    changes = 0
    plan = StepPlan(new, old)
    continued = 0
    for part in new.parts:
        source = plan.source_of(part)
        if source is None:
            changes += 1
            continue

        if bool(source.behind) != bool(part.behind) or not continues(
            source.part, part.part, length
        ):
            return None

        continued += 1
        changes += source.part != part.part

    return changes if continued == len(old.parts) else None


def continues(old: DecoderPart, new: DecoderPart, length: int) -> bool:
    """Return whether a part has weights with another one's function.

    Args:
        old: Part of the parent.
        new: Part of the child.
        length: Tokens of a sequence.
    """
    if isinstance(old, Attention) and isinstance(new, Attention):
        seen = [min(part.window or length, length) for part in (old, new)]
        more = new.kv_heads % old.kv_heads == 0
        same = replace(new, kv_heads=old.kv_heads, window=old.window) == old
        return same and more and seen[0] == seen[1]

    if isinstance(old, Mamba2) and isinstance(new, Mamba2):
        return replace(new, state=old.state) == old and new.state >= old.state

    if isinstance(old, MixtureOfExperts) and isinstance(new, MixtureOfExperts):
        return replace(new, hidden=old.hidden) == old and new.hidden >= old.hidden

    if isinstance(old, SwiGlu) and isinstance(new, SwiGlu | MixtureOfExperts):
        return new.hidden >= old.hidden

    if isinstance(old, Gelu) and isinstance(new, Gelu):
        return new.hidden >= old.hidden

    return old == new


def _words(plan: StepPlan) -> list[str]:
    words = []
    for part in plan.child.parts:
        source = plan.source_of(part)
        where = f"in block {plan.child.block}"
        if source is None:
            words.append(f"insert {part.part.op} {where}")
        elif source.part.op != part.part.op:
            words.append(f"{source.part.op} to {part.part.op} {where}")
        elif source.part.units != part.part.units:
            words.append(
                f"widen {part.part.op} {where} from {source.part.units} to {part.part.units}"
            )
        elif source.part != part.part:
            before = source.part.settings()
            for name, value in part.part.settings().items():
                if before.get(name) != value:
                    words.append(f"{name} of {part.part.op} {where} from {before[name]} to {value}")

    return words
