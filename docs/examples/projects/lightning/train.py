import pytorch_lightning as lightning
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self, width, lr):
        super().__init__()
        self.lr = lr
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, width))
        self.net += torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(width, 10))

    def training_step(self, batch):
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch):
        self.log("valid_accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


def loader(part):
    return DataLoader(TensorDataset(torch.tensor(part.inputs), torch.tensor(part.targets)), 64)


def fit(trial):
    trainer = lightning.Trainer(max_epochs=5, logger=False, enable_checkpointing=False)
    data = trial.data()
    trainer.fit(Classifier(**trial.parameters), loader(data.train), loader(data.valid))
    return {"valid_accuracy": trainer.callback_metrics["valid_accuracy"].item()}
