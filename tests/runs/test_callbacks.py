"""Callbacks of training frameworks, with their own trainers."""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from archive import record
from archive.runs import life_cycle
from archive.runs.run_folder import pending_runs


@pytest.fixture
def configuration(store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(life_cycle, "start_delivery", lambda _: None)
    return replace(store_settings, home=tmp_path / "home")


def rows(count=8):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 4, generator=generator)


@pytest.mark.skipif(not find_spec("pytorch_lightning"), reason="needs pytorch-lightning")
@pytest.mark.filterwarnings("ignore")
def test_lightning_tells_metrics_hyperparameters_seed_and_network(configuration, tmp_path):
    import pytorch_lightning as lightning

    class Regression(lightning.LightningModule):
        def __init__(self, rate):
            super().__init__()
            self.save_hyperparameters()
            self.net = nn.Linear(4, 1)
            self.example_input_array = rows(2)

        def forward(self, batch):
            return self.net(batch)

        def training_step(self, batch, index):
            loss = self(batch).square().mean()
            self.log("train_loss", loss, on_epoch=True)
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", self(batch).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), self.hparams.rate)

    lightning.seed_everything(7)
    with record("l", minimise="val_loss", settings=configuration) as run:
        trainer = lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            callbacks=[run.lightning()],
        )
        loader = torch.utils.data.DataLoader(rows(), batch_size=4)
        trainer.fit(Regression(0.1), loader, loader)

    (folder,) = pending_runs(configuration.home / "runs")
    kept = folder.read()
    assert (kept.values, kept.seed) == ({"rate": 0.1, "max_epochs": 2}, 7)
    assert kept.curve["epoch"] == [2, 4]
    assert kept.metrics["val_loss"] == pytest.approx(float(trainer.callback_metrics["val_loss"]))
    assert kept.curve["val_loss"][1] < kept.curve["val_loss"][0]
    assert kept.metrics["train_loss_epoch"] > 0
    assert folder.network() is not None


@pytest.mark.skipif(not find_spec("accelerate"), reason="needs transformers and accelerate")
@pytest.mark.filterwarnings("ignore")
def test_hugging_faces_trainer_tells_metrics_arguments_and_seed(configuration, tmp_path):
    import transformers

    class Regression(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 1)

        def forward(self, inputs, labels=None):
            output = self.net(inputs)
            return {"loss": output.square().mean(), "logits": output}

    data = [{"inputs": row, "labels": torch.zeros(1)} for row in rows()]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "trainer"),
        num_train_epochs=2,
        learning_rate=0.01,
        per_device_train_batch_size=4,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=5,
    )
    with record("h", minimise="eval_loss", settings=configuration) as run:
        transformers.Trainer(
            Regression(),
            arguments,
            train_dataset=data,
            eval_dataset=data,
            callbacks=[run.hugging_face()],
        ).train()

    (folder,) = pending_runs(configuration.home / "runs")
    kept = folder.read()
    assert kept.seed == 5
    assert (kept.values["learning_rate"], kept.values["num_train_epochs"]) == (0.01, 2)
    assert not {"output_dir", "seed", "adam_beta1"} & set(kept.values)
    assert kept.curve["epoch"] == [2, 4]
    assert kept.curve["eval_loss"][1] < kept.curve["eval_loss"][0]


MISSING = """
import sys
for name in ("lightning", "pytorch_lightning", "transformers"):
    sys.modules[name] = None

from archive.errors import UsageError
from archive.runs.callbacks import hugging_face_callback, lightning_callback
for make in (hugging_face_callback, lightning_callback):
    try:
        make(None)
    except UsageError as error:
        print(error)
"""


def test_a_framework_that_is_missing_is_named_with_its_extra():
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "the callback needs transformers: pip install 'nas-archive[frameworks]'",
        "the callback needs pytorch-lightning: pip install 'nas-archive[frameworks]'",
    ]
