"""Distillation of a new part from the parent's block, and the loss of the network with it.

| symbol | meaning                                                                            |
|--------|------------------------------------------------------------------------------------|
| x      | stream before the block, in the parent                                             |
| b, s   | the parent's block, and the block with the new part                                |
| e      | mean of (s(x) - b(x))^2, divided by the mean of b(x)^2 (Puzzle, section 3)          |

The new part is trained to minimise e on the training text, by AdamW with the batches and the learning
rate of the protocol, for a number of steps; all else is frozen. Then the whole network with the new block is measured on the
validation text: its loss, and the mean divergence KL(parent || network) of a token, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.errors import TrainingError
from archive.trainer.blocks.replacements import PartReplacement
from archive.trainer.blocks.students import make_student
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import sum_losses
from archive.trainer.nn.decoders.feed_forward import Experts
from archive.trainer.nn.decoders.network import DecoderBlock, DecoderNetwork
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task

_TOKENS = 2**14
"""Most tokens of a forward pass of a measurement."""


@dataclass(frozen=True)
class BlockScore:
    """What a network with one replaced block is worth.

    Attributes:
        loss: Mean loss of a token of the validation text, in nats.
        divergence: Mean divergence from the parent, in nats.
        errors: e of each step, before the step; empty where nothing is trained.
    """

    loss: float
    divergence: float
    errors: tuple[float, ...] = ()

    @property
    def bits(self) -> float:
        """Loss in bits of a token, a byte."""
        return self.loss / math.log(2)


class BlockDistiller:
    """A parent whose blocks are replaced one at a time.

    Args:
        parent: The trained network, in evaluation mode.
        task: Task on text.
        protocol: Its protocol: batches, learning rate and data.
        steps: Steps of a distillation.
        device: Device of all computations.
    """

    def __init__(
        self,
        parent: DecoderNetwork,
        task: Task,
        protocol: TrainingProtocol,
        *,
        steps: int,
        device: torch.device,
    ) -> None:
        self.parent = parent.to(device).eval().requires_grad_(False)
        self.device = device
        self.steps = steps
        self._protocol = replace(protocol, epoch_steps=max(steps, 1))
        splits = task.load(protocol)
        self._train = Batches.of(splits.train, device)
        self._valid = Batches.of(splits.valid, device)

    def measure_parent(self) -> BlockScore:
        """Return the score of the parent, with a divergence of 0."""
        index = len(self.parent.blocks) - 1
        return self._measure(index, self.parent.blocks[index])

    def score(self, replacement: PartReplacement, seed: int) -> BlockScore:
        """Distil a new part, and return the score of the network with it.

        Args:
            replacement: The replacement.
            seed: Seed of new weights and of the order of the text.

        Raises:
            TrainingError: The distillation diverged.
        """
        block = self.parent.blocks[replacement.index]
        assert isinstance(block, DecoderBlock)
        base_width = round(self.parent.rate_factor * replacement.width)
        student, parameters = make_student(block, replacement, seed, base_width)
        student.to(self.device)
        errors: tuple[float, ...] = ()
        if parameters and self.steps:
            errors = self._distil(replacement.index, student, parameters, seed)

        score = self._measure(replacement.index, student.eval())
        if not math.isfinite(score.loss):
            raise TrainingError(
                f"{replacement}: the distillation diverged, the loss is {score.loss}"
            )

        return replace(score, errors=errors)

    def _distil(
        self, index: int, student: nn.Module, parameters: list[nn.Parameter], seed: int
    ) -> tuple[float, ...]:
        rules = self._protocol
        optimiser = make_optimiser(parameters, rules.learning_rate, self.parent.rate_factor)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, self._rate)
        block = self.parent.blocks[index]
        student.train()
        errors = []
        for tokens in self._texts(seed):
            with torch.no_grad():
                stream = self._stream(tokens, index)
                target = block(stream, 0, None)

            error = F.mse_loss(student(stream, 0, None), target) / target.square().mean()
            errors.append(error.detach())
            optimiser.zero_grad()
            (error + self._balance(student)).backward()
            if rules.gradient_norm is not None:
                nn.utils.clip_grad_norm_(parameters, rules.gradient_norm)

            optimiser.step()
            schedule.step()

        values: list[float] = torch.stack(errors).tolist()
        return tuple(values)

    def _rate(self, step: int) -> float:
        """Return the factor of the learning rate: a linear warm-up, then a cosine to zero."""
        warm = max(1, round(self._protocol.warmup * self.steps))
        if step < warm:
            return (step + 1) / warm

        share = (step - warm) / max(1, self.steps - warm)
        return 0.5 * (1 + math.cos(math.pi * share))

    def _balance(self, student: nn.Module) -> Tensor:
        """Return the weighted balance of experts."""
        total = torch.zeros((), device=self.device)
        for module in student.modules():
            if isinstance(module, Experts):
                total = total + self.parent.balance * module.balance
                module.balance = module.balance.detach()

        return total

    def _texts(self, seed: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        for tokens, _ in self._train.epoch(self._protocol, generator):
            yield tokens

    def _stream(self, tokens: Tensor, index: int) -> Tensor:
        """Return the stream before a block of the parent."""
        stream: Tensor = self.parent.embedding(tokens.long())
        for block in self.parent.blocks[:index]:
            stream = block(stream, 0, None)

        return stream

    def _read(self, stream: Tensor, index: int) -> Tensor:
        """Return the logits from the stream behind a block of the parent."""
        for block in self.parent.blocks[index + 1 :]:
            stream = block(stream, 0, None)

        return self.parent.read(stream)

    @torch.inference_mode()
    def _measure(self, index: int, student: nn.Module) -> BlockScore:
        targets = self._valid.targets
        sequences = max(1, _TOKENS // targets.shape[1])
        losses = []
        divergences = []
        following = torch.split(targets, sequences)
        for tokens, labels in zip(self._valid.parts(sequences), following, strict=True):
            stream = self._stream(tokens, index)
            logits = self._read(student(stream, 0, None), index)
            parent_logits = self._read(self.parent.blocks[index](stream, 0, None), index)
            losses.append(sum_losses(logits, labels))
            logs = logits.float().log_softmax(-1)
            parent_logs = parent_logits.float().log_softmax(-1)
            divergence = F.kl_div(logs, parent_logs, reduction="sum", log_target=True)
            divergences.append(divergence.double())

        tokens_count = targets.numel()
        loss = float(torch.stack(losses).sum()) / tokens_count
        return BlockScore(loss, float(torch.stack(divergences).sum()) / tokens_count)


def make_optimiser(parameters: list[nn.Parameter], rate: float, factor: float) -> torch.optim.AdamW:
    """Return the optimiser of a part.

    Args:
        parameters: Parameters of the part and its norms.
        rate: Peak of the learning rate.
        factor: Factor of the rate of matrices, as in the training of the parent.
    """
    matrices = [parameter for parameter in parameters if parameter.ndim == 2]
    others = [parameter for parameter in parameters if parameter.ndim != 2]
    groups = [{"params": matrices, "lr": rate * factor}, {"params": others, "lr": rate}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0)
