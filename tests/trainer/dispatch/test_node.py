"""The node of a dispatcher: trials one after the other, watched where they run."""

from __future__ import annotations

from dataclasses import replace

from archive.queue.causes import Cause
from archive.trainer.dispatch.node import TrialNode
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import EpochReport, TrialFailed, TrialFinished
from archive.trainer.trial.spec import TrialSpec
from tests.support import faulty
from tests.support.networks.nets import TINY_MLP


def told(node: TrialNode):
    messages = []
    while not messages or isinstance(messages[-1], EpochReport):
        messages += node.poll().messages

    return messages


def test_a_node_serves_one_trial_after_the_other_and_keeps_to_their_limits(tmp_path):
    task = registry.get("diabetes")
    scratch = tmp_path / "scratch"
    spec = TrialSpec(
        TINY_MLP, task, task.protocol(), 1, "cpu", 1, tmp_path / "weights", proposal="one"
    )
    node = TrialNode(str(scratch))
    assert node.start(spec)
    assert len([path for path in scratch.glob("*/*") if path.is_dir()]) == 1
    *epochs, last = told(node)
    assert isinstance(last, TrialFinished) and len(epochs) == last.result.epochs > 0

    hanging = faulty.faulty(faulty.hangs)
    node.start(
        replace(spec, task=hanging, protocol=hanging.protocol(), proposal="two", seconds=0.5)
    )
    (failed,) = told(node)
    assert (
        isinstance(failed, TrialFailed) and "--trial-timeout" in failed.reason and not failed.retry
    )

    node.start(replace(spec, task=hanging, protocol=hanging.protocol(), proposal="three"))
    assert node.poll().messages == []
    assert node.abandon("gone", Cause.STALL).retry
    (failed,) = told(node)
    assert "no such trial" in failed.reason
    # Nothing of the trials is left on the node.
    assert not list(scratch.glob("*/*"))
