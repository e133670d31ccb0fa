import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification


def rows(part):
    pairs = zip(torch.tensor(part.inputs), part.targets.tolist(), strict=True)
    return [{"pixel_values": image, "labels": label} for image, label in pairs]


def fit(trial):
    parameters, data = trial.parameters, trial.data()
    rate = parameters.pop("learning_rate")
    config = ViTConfig(image_size=8, patch_size=2, num_channels=1, num_labels=10, **parameters)
    arguments = TrainingArguments(str(trial.scratch), learning_rate=rate, report_to=[])
    model = ViTForImageClassification(config)
    trainer = Trainer(model, arguments, train_dataset=rows(data.train))
    trainer.train()
    logits = trainer.predict(rows(data.valid)).predictions
    return {"valid_accuracy": float((logits.argmax(1) == data.valid.targets).mean())}
