"""Folders of images: kinds of images and labels, refusals in one line, and bad files."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import ArchiveError, TrainingError, UnusableFileError, UsageError
from archive.store.records import Study
from archive.trainer.datasets import layout
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry
from archive.trainer.tasks.file_access import FileAccess, label_of
from tests.support import examples
from tests.support.networks.nets import TINY_CNN


def image(mode="RGB", size=(10, 8), shade=100):
    """Return an image of noise around a shade."""
    width, height = size
    rng = np.random.default_rng(shade)
    noise = rng.integers(0, 40, (height, width))
    if mode == "I;16":
        return PIL.Image.fromarray(((shade + noise) * 200).astype(np.uint16))

    grey = PIL.Image.fromarray((shade + noise).astype(np.uint8))
    if mode in ("LA", "RGBA"):
        half = PIL.Image.fromarray(np.full((height, width), 128, np.uint8))
        converted = grey.convert(mode)
        converted.putalpha(half)
        return converted

    if mode == "RGB":
        array = np.stack([shade + noise, noise, 2 * noise], axis=-1)
        return PIL.Image.fromarray(array.astype(np.uint8))

    return grey.convert(mode)


def fill(folder, modes=("RGB",), n=12, sizes=((10, 8),), ending="png", classes=("cat", "dog")):
    """Write images of two classes, which differ in their shades."""
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for index in range(n):
            mode = modes[index % len(modes)]
            size = sizes[index % len(sizes)]
            picture = image(mode, size, 20 + 120 * number + index)
            picture.save(folder / name / f"{index:02}.{ending}")

    return folder


def test_a_folder_for_each_class_is_a_task_that_is_trained(tmp_path):
    folder = fill(tmp_path / "pets", n=40, sizes=((8, 8),))
    task = registry.get(f"images:{folder}/")
    protocol = task.protocol()
    assert task.name == f"images:{folder}"
    assert (task.kind, task.outputs, task.input_shape) == ("classification", 2, (3, 8, 8))
    assert (protocol.train, protocol.valid, protocol.test) == (48, 16, 16)
    assert protocol.name == f"images/{protocol.data[:12]}"
    assert protocol.preparation["size"] == [8, 8]
    assert task.label == "pets"
    assert label_of(f"{task.name}@16:balanced") == "images:pets@16:balanced"
    task = pickle.loads(pickle.dumps(task))
    assert train(TINY_CNN, task, task.protocol()).value > 0.5


FORMS = {
    "colour": (("RGB",), 3, 8, "colour"),
    "grey": (("L", "1"), 1, 8, "grey"),
    "grey palette": (("P",), 1, 8, "grey"),
    "colours among grey": (("L", "RGB"), 3, 8, "colour"),
    "transparent": (("RGBA", "RGB", "L"), 4, 8, "colour with transparency"),
    "transparent grey": (("LA", "L"), 2, 8, "grey with transparency"),
    "16 bits": (("I;16",), 1, 16, "grey of 16 bits"),
    "16 and 8 bits": (("I;16", "L"), 1, 16, "grey of 16 bits"),
    "16 bits among colours": (("I;16", "RGB"), 3, 8, "colour"),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("size", ["", "@6", "@6x4"])
def test_images_of_each_form_become_arrays(tmp_path, name, size):
    modes, channels, bits, words = FORMS[name]
    folder = fill(tmp_path / "im", modes)
    task = registry.get(f"images:{folder}{size}")
    height, width = {"": (8, 10), "@6": (6, 6), "@6x4": (6, 4)}[size]
    assert task.input_shape == (channels, height, width)
    assert f"{height}x{width}, {words}" in task.summary
    assert ("resized to" in task.summary) == bool(size)
    assert task.protocol().preparation["bits"] == bits
    splits = task.load()
    # Standardised by the training part, with dark and light classes told apart.
    np.testing.assert_allclose(splits.train.inputs.mean(axis=(0, 2, 3)), 0, atol=1e-4)
    shades = splits.train.inputs[:, 0].mean(axis=(1, 2))
    dark = shades[splits.train.targets == 0]
    assert dark.max() < shades[splits.train.targets == 1].min() or "1" in modes


def test_16_bits_are_kept(tmp_path):
    folder = fill(tmp_path / "im", ("I;16",))
    task = registry.get(f"images:{folder}")
    scaling = task.scaling(task.protocol())
    assert 255 < scaling.mean[0] < 65_535
    splits = task.load()
    with PIL.Image.open(folder / "cat" / "00.png") as picture:
        expected = (np.asarray(picture) - scaling.mean[0]) / scaling.deviation[0]

    inputs = np.concatenate([splits.train.inputs, splits.valid.inputs, splits.test.inputs])
    assert np.isclose(inputs[:, 0], expected, atol=1e-5).all(axis=(1, 2)).sum() == 1


def test_the_default_size_is_the_median_of_at_most_64(tmp_path):
    folder = fill(tmp_path / "im", sizes=((200, 100), (100, 200), (200, 100)))
    task = registry.get(f"images:{folder}")
    assert task.input_shape == (3, 32, 64)
    assert "resized to 32x64 by the median of 2 sizes" in task.summary


def test_parts_of_a_folder_are_kept(tmp_path):
    fill(tmp_path / "im" / "train", n=20)
    fill(tmp_path / "im" / "test", n=6)
    protocol = registry.get(f"images:{tmp_path / 'im'}").protocol()
    assert (protocol.train, protocol.valid, protocol.test) == (32, 8, 12)
    fill(tmp_path / "im" / "val", n=5)
    protocol = registry.get(f"images:{tmp_path / 'im'}").protocol()
    assert (protocol.train, protocol.valid, protocol.test, protocol.split) == (40, 10, 12, "given")


TABLES = {
    "names": ("file,label\n", "{0:02}.png,{1}\n", "classification"),
    "stems": ("id,breed\n", "{0:02},{1}\n", "classification"),
    "semicolons": ("file;label\n", "{0:02}.png;{1}\n", "classification"),
    "values": ("file,age\n", "{0:02}.png,{0}.5\n", "regression"),
    "whole numbers": ("file,digit\n", "{0:02}.png,{2}\n", "classification"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_csv_beside_the_images_has_their_labels(tmp_path, name):
    head, row, kind = TABLES[name]
    folder = fill(tmp_path / "im", n=30, classes=("all",))
    for path in (folder / "all").iterdir():
        path.rename(folder / path.name)

    rows = [row.format(index, "ab"[index % 2], index % 3) for index in range(30)]
    (folder / "labels.csv").write_text(head + "".join(rows))
    task = registry.get(f"images:{folder}")
    assert task.kind == kind
    assert len(task.load().train) == 18


def test_the_protocol_is_of_names_and_contents(tmp_path):
    first = registry.get(f"images:{fill(tmp_path / 'a')}").protocol()
    assert registry.get(f"images:{fill(tmp_path / 'b')}").protocol() == first
    (tmp_path / "b" / "notes.txt").write_text("no image")
    (tmp_path / "b" / "cat" / ".hidden.png").write_text("no image")
    assert registry.get(f"images:{tmp_path / 'b'}").protocol() == first
    (tmp_path / "b" / "cat" / "00.png").rename(tmp_path / "b" / "cat" / "zz.png")
    assert registry.get(f"images:{tmp_path / 'b'}").protocol().name != first.name
    image(shade=7).save(tmp_path / "a" / "cat" / "00.png")
    assert registry.get(f"images:{tmp_path / 'a'}").protocol().name != first.name


def test_a_folder_that_changes_is_not_taken_for_the_old_one(tmp_path):
    folder = fill(tmp_path / "im")
    task = registry.get(f"images:{folder}")
    image(shade=7).save(folder / "cat" / "00.png")
    with pytest.raises(TrainingError, match="has changed since"):
        task.load()


def test_bad_files_are_named_and_left_out_on_request_only(tmp_path):
    folder = fill(tmp_path / "im")
    whole = (folder / "cat" / "00.png").read_bytes()
    (folder / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "dog" / "text.jpg").write_text("no image")
    said = r"2 files of .* cannot be read as images: cat/cut.png \(.*\), dog/text.jpg \(.*:skip-bad"
    with pytest.raises(UsageError, match=said):
        registry.get(f"images:{folder}")

    task = registry.get(f"images:{folder}@8:skip-bad")
    assert task.name == f"images:{folder}@8:skip-bad"
    assert "2 bad files left out" in task.summary
    assert task.protocol().preparation["skipped"] == 2
    assert sum(map(len, (task.load().train, task.load().valid, task.load().test))) == 24


def test_a_table_may_lack_files_on_request_and_have_decimal_commas(tmp_path):
    fill(tmp_path, classes=("all",))
    rows = [f"all/{number:02};{number},5" for number in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["f;l", *rows, "all/99;1,5"]))
    with pytest.raises(UsageError, match=r"row 13 .* or append :skip-bad to the task"):
        registry.get(f"images:{tmp_path}")

    task = registry.get(f"images:{tmp_path}:skip-bad")
    assert task.kind == "regression"
    assert task.summary.endswith("; 1 bad file left out")


def at_root(folder):
    image().save(folder / "00.png")


def two_tables(folder):
    (folder / "a.csv").write_text("f,l\n")
    (folder / "b.csv").write_text("f,l\n")


def table_of(text):
    return lambda folder: (folder / "a.csv").write_text(text)


def link_out(folder):
    (folder / "cat" / "out.png").symlink_to("/etc/passwd")


def folder_link(folder):
    (folder / "other").symlink_to(folder / "cat")


def floats(folder):
    PIL.Image.fromarray(np.ones((4, 4), np.float32)).save(folder / "cat" / "f.tif")


def no_images(folder):
    shutil.rmtree(folder / "cat")
    shutil.rmtree(folder / "dog")


def one_class(folder):
    shutil.rmtree(folder / "dog")


REFUSED = {
    "an image outside of the classes": (at_root, "", "folder for each class, or a CSV"),
    "several tables": (two_tables, "", "one CSV with the labels, got 2"),
    "empty table": (table_of("f,l\n"), "", "has no row with the name"),
    "three columns": (table_of("f,l,m\n1,2,3\n"), "", "two columns, .*: row 1 has 3"),
    "unknown file": (table_of("f,l\n../x.png,2\n"), "", "row 1 .* names no image .*'../x.png'"),
    "file twice": (table_of("f,l\ncat/00,1\ncat/00.png,1\n"), "", "row 2 .* for the second time"),
    "no label": (table_of("f,l\ncat/00,\n"), "", "row 1 .* has no label"),
    "link out of the folder": (link_out, "", "a link in it leads out of it"),
    "linked folder": (folder_link, "", "a folder in it is a link"),
    "floats": (floats, "", r"cat/f.tif \(floating-point numbers\)"),
    "no images": (no_images, "", "has no images"),
    "one class": (one_class, "", "two classes or more, got 1"),
    "size 0": (None, "@0", "size of images must be 1 to 512"),
    "size 9999": (None, "@9999", "size of images must be 1 to 512"),
    "two kinds": (None, ":classes:values", "given once"),
    "values of words": (None, ":values", "must have a finite number"),
    "an option twice": (None, ":balanced:balanced", "given once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_that_cannot_be_learned_from_is_refused_in_one_line(tmp_path, name):
    change, options, said = REFUSED[name]
    folder = fill(tmp_path / "im")
    if change is not None:
        change(folder)

    with pytest.raises(UsageError, match=said) as error:
        registry.get(f"images:{folder}{options}")

    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["images:", "images:/nowhere", "images:{file}"])
def test_unusable_name_of_a_folder_is_explained(tmp_path, name):
    file = tmp_path / "f.png"
    file.write_text("")
    with pytest.raises(UsageError, match=r"is named as|cannot read|must name a folder"):
        registry.get(name.format(file=file))


def test_a_path_of_a_folder_says_its_task(tmp_path):
    folder = fill(tmp_path / "shapes")
    with pytest.raises(UsageError, match=f"is a folder, not a task: its task is images:{folder}"):
        registry.get(str(folder))


def study_of(folder):
    protocol = f"images/{registry.get(f'images:{folder}').protocol().data[:12]}"
    return Study("s", f"images:{folder}", protocol, "cnn", "valid_accuracy")


def test_trainers_open_named_folders_and_data_folders_only(tmp_path):
    folder = fill(tmp_path / "im")
    study = study_of(folder)
    home = tmp_path / "home"
    with pytest.raises(ArchiveError, match="may not be read here"):
        registry.of_study(study, FileAccess.of(home))

    assert registry.of_study(study, FileAccess.of(home, [tmp_path])).outputs == 2
    registry.name_file(registry.get(study.task), home)
    assert registry.of_study(study, FileAccess.of(home)).outputs == 2
    image(shade=7).save(folder / "cat" / "00.png")
    with pytest.raises(ArchiveError, match=r"may not be read here|not the one"):
        registry.of_study(study, FileAccess.of(home))


def test_reasons_quote_no_file_names_of_a_folder(tmp_path):
    folder = fill(tmp_path / "im")
    study = study_of(folder)
    (folder / "cat" / "secret.png").write_text("")
    with pytest.raises(UnusableFileError) as error:
        registry.get(study.task)

    assert "secret" in str(error.value)
    assert "secret" not in error.value.fault


def test_large_arrays_are_on_disk_and_equal(tmp_path, monkeypatch):
    folder = fill(tmp_path / "im")
    task = registry.get(f"images:{folder}")
    protocol = task.protocol()
    rows = task.loader.args[1]
    assert rows.form == "images"
    first = task.load()
    monkeypatch.setattr(layout, "IN_MEMORY", 0)
    monkeypatch.setattr(layout, "CHUNK_NUMBERS", 100)
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "other"))
    second = task.load(protocol)
    np.testing.assert_array_equal(first.train.inputs, second.train.inputs)
    np.testing.assert_array_equal(first.test.inputs, second.test.inputs)


@examples(10)
@given(st.binary(max_size=60), st.integers(0, 400), st.sampled_from(["png", "jpg", "tif", "gif"]))
def test_any_bytes_are_an_image_or_a_bad_file(tmp_path_factory, content, cut, ending):
    folder = fill(tmp_path_factory.mktemp("fuzz") / "im", n=6)
    image(size=(6, 6)).save(folder / f"good.{ending}")
    good = (folder / f"good.{ending}").read_bytes()
    (folder / f"good.{ending}").unlink()
    (folder / "cat" / f"fuzz.{ending}").write_bytes(good[:cut] + content + good[cut + 8 :])
    task = registry.get(f"images:{folder}@4:skip-bad")
    assert len(task.load().train) > 0
