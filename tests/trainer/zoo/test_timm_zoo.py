"""Tables of timm, and what their names say."""

from __future__ import annotations

import gzip

import pytest

from archive.errors import UnknownNameError, UsageError
from archive.trainer.zoo import timm_zoo
from archive.trainer.zoo.published import pretraining_of, select

RESULTS = """model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation
net.a1_in1k,288,80.214,19.786,94.65,5.35,25.56,1.000,bicubic
net.fb_in22k_ft_in1k,224,83.5,16.5,96,4,"1,025.56",0.875,bicubic
small,64,10.5,89.5,20,80,0.50,0.875,bicubic
"""
SPEEDS = """model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,infer_gmacs,infer_macts
net,224,2000.0,512,1024,25.56,4.11,11.11
other,224,1.0,1,1,1,1,1
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "results-imagenet.csv").write_text(RESULTS)
    (tmp_path / "results-sketch.csv.gz").write_bytes(gzip.compress(RESULTS.encode()))
    (tmp_path / "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv").write_text(SPEEDS)
    (tmp_path / "results-unknown.csv").write_text("a,b\n1,2\n")
    return tmp_path


def test_each_recipe_is_a_protocol_and_each_architecture_a_network(folder):
    small, net = timm_zoo.published(folder)
    assert (small.name, small.reference, net.name, net.reference) == (
        "small",
        "small",
        "net",
        "net.a1_in1k",
    )
    assert {result.id for result in net.results} == {
        "imagenet-1k/timm/a1_in1k@288/net.a1_in1k",
        "imagenet-1k/timm/fb_in22k_ft_in1k@224/net.fb_in22k_ft_in1k",
        "imagenet-sketch/timm/a1_in1k@288/net.a1_in1k",
        "imagenet-sketch/timm/fb_in22k_ft_in1k@224/net.fb_in22k_ft_in1k",
        "inference/timm/rtx4090/amp/pt2.4/cu124@224/net",
    }
    assert {result.id for result in small.results} == {
        "imagenet-1k/timm/default@64/small",
        "imagenet-sketch/timm/default@64/small",
    }
    first, tuned, *_ = net.results
    assert first.result.value == first.result.metrics["top1"] == 80.214
    assert first.result.metrics["top5"] == 94.65
    assert "pretraining" not in first.result.provenance
    assert tuned.result.provenance["pretraining"] == "in22k"
    assert tuned.params == 1025.56
    assert tuned.suits(1_025_564_999) and not tuned.suits(1_025_571_000)


def test_a_speed_names_device_and_software(folder):
    *_, speed = timm_zoo.published(folder)[1].results
    assert speed.place.direction == "maximise"
    assert speed.result.value == 2000.0
    assert speed.result.metrics == {
        "samples_per_second": 2000.0,
        "latency_ms": 0.5,
        "latency_batch": 1024.0,
        "flops": 4.11e9,
        "activations": 11.11e6,
    }
    assert (speed.result.device, speed.result.hardware) == ("cuda", "RTX 4090")


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("infer-fp32-nchw-pt240-cpu-i7_12700h-dynamo", "timm/i7_12700h/fp32/pt2.4/dynamo@224"),
        ("infer-amp_bf16-nhwc-pt291-cu130-5090", "timm/rtx5090/amp_bf16/nhwc/pt2.9/cu130@224"),
        ("infer-amp-nchw-pt112-cu113-rtx3090", "timm/rtx3090/amp/pt1.12/cu113@224"),
    ],
)
def test_the_name_of_a_file_of_speeds_is_read(folder, name, protocol):
    (folder / f"benchmark-{name}.csv").write_text(SPEEDS)
    protocols = {result.place.protocol for result in timm_zoo.published(folder)[1].results}
    assert protocol in protocols


def test_one_content_has_one_digest_compressed_or_not(folder):
    commits = {}
    for result in timm_zoo.published(folder)[0].results:
        commits[result.place.task] = result.result.provenance["commit"]

    assert commits["imagenet-1k"] == commits["imagenet-sketch"]
    assert commits["imagenet-1k"].startswith("sha256:")


@pytest.mark.parametrize(
    ("recipe", "data"),
    [
        ("a1_in1k", None),
        ("mae_in1k_ft_in1k", None),
        ("ft_in1k", None),
        ("fb_in22k_ft_in1k_384", "in22k"),
        ("clip_laion2b_augreg_ft_in12k_in1k", "laion2b+in12k"),
        ("mim_in22k_ft_in22k_in1k", "in22k"),
        ("ns_jft_in1k", "jft"),
        ("clip_ft_in1k", "clip"),
        ("IMAGENET1K_SWAG_E2E_V1", "swag"),
        ("default", None),
    ],
)
def test_the_data_of_the_pretraining_is_in_the_name_of_the_recipe(recipe, data):
    assert pretraining_of(recipe).get("pretraining") == data


def test_patterns_select_architectures_or_models(folder):
    networks = timm_zoo.published(folder)
    assert select(networks, []) == networks
    assert select(networks, ["n*"]) == [networks[1]]
    [net] = select(networks, ["*.a1_in1k"])
    assert {result.model for result in net.results} == {"net.a1_in1k"}
    with pytest.raises(UnknownNameError, match="smal"):
        select(networks, ["n*", "smal"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,top1\n", r"results-imagenet\.csv has no column img_size"),
        (RESULTS.replace("80.214", "high"), r"line 2 of results-imagenet\.csv has the top1 'high'"),
        (RESULTS.replace("80.214", "nan"), r"line 2 of results-imagenet\.csv has the top1 'nan'"),
        (RESULTS.replace("small,", ","), r"line 4 of results-imagenet\.csv has no model"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_line(folder, text, message):
    (folder / "results-imagenet.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        timm_zoo.published(folder)


def test_a_folder_without_results_is_refused(tmp_path):
    (tmp_path / "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv").write_text(SPEEDS)
    with pytest.raises(UsageError, match="has no results of timm"):
        timm_zoo.published(tmp_path)
