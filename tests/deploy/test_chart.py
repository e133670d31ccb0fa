"""The Helm chart: rendered by helm, valid by the schemas, closed, and its commands are those of the
package."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import urlsplit
from urllib.request import urlopen

import jsonschema
import pytest
import yaml

from archive import __version__
from archive.settings import load
from archive.store.records import State
from tests.support import wait_until
from tests.support.commands import parsed, propose, shell, table
from tests.support.docker_files import DOCKER, compose, last
from tests.support.kubernetes import (
    CHART,
    check,
    containers,
    helm,
    pods,
    render,
    selects,
    unprivileged,
)

WHOLE = {
    "agents": {
        "first": {
            "agent": "random",
            "task": "digits",
            "budget": 1000000,
            "batch": 4,
            "args": ["--retrain"],
        }
    },
    "trainers": {
        "default": {"study": "a & b", "slots": 2, "gpus": 2, "max": 64},
        "always": {"autoscaling": False, "replicas": 3, "gpus": 0, "args": ["--drain"]},
    },
    "storage": {
        "weights": "s3://bucket/weights",
        "checkpoints": "s3://bucket/checkpoints",
        "shared": {"size": "1Ti", "storageClass": "nfs"},
        "data": {"existingClaim": "data-sets"},
    },
    "envFrom": [{"secretRef": {"name": "s3"}}],
    "env": [{"name": "AWS_ENDPOINT_URL", "value": "https://minio:9000"}],
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
EXTERNAL = {
    "database": {"uri": "neo4j+s://db.example.org:7688", "name": "nas"},
    "trainers": {"default": None},
}
CASES = {"defaults": {}, "whole": WHOLE, "external": EXTERNAL}


@pytest.fixture(scope="module", params=CASES)
def objects(request, tmp_path_factory):
    return render(tmp_path_factory.mktemp(request.param), CASES[request.param])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return render(tmp_path_factory.mktemp("whole"), WHOLE)


def named(things, kind, suffix=""):
    (found,) = [
        each
        for each in things
        if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)
    ]
    return found


def variables(container):
    return {each["name"]: each.get("value") for each in container.get("env", ())}


def test_the_linter_finds_nothing():
    helm("lint", str(CHART), "--strict", "--kube-version=1.34.0")


def test_every_object_is_valid(objects):
    assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects) > 5
    for each in objects:
        check(each)


def test_a_mistake_in_an_object_is_found(whole):
    """The schemas that this project keeps itself are strict, too."""
    for kind, field in (
        ("ScaledJob", "maxReplicas"),
        ("PodMonitor", "endpoints"),
        ("NetworkPolicy", "ingres"),
    ):
        thing = next(each for each in whole if each["kind"] == kind)
        with pytest.raises((jsonschema.ValidationError, Exception), match=field):
            check({**thing, "spec": {**thing["spec"], field: 1}})


def test_pods_have_no_privileges_and_no_secret_but_by_reference(objects):
    assert {
        name: found for name, template in pods(objects) if (found := unprivileged(template))
    } == {}
    assert "Secret" not in {each["kind"] for each in objects}
    for _, template in pods(objects):
        # The image of Neo4j would take the variables of services for settings.
        assert template["spec"]["enableServiceLinks"] is False
        for container in containers(template):
            assert not [
                each for each in container.get("env", ()) if re.search("PASSWORD|AUTH", each["name"]) and
                not (each["name"].endswith("_FILE") and each["value"].startswith("/run/secrets/"))
            ]  # fmt: skip


def test_every_mount_has_its_volume_and_every_written_folder_is_one(objects):
    claims = [
        each for thing in objects for each in thing.get("spec", {}).get("volumeClaimTemplates", ())
    ]
    for name, template in pods(objects):
        volumes = {each["name"] for each in template["spec"]["volumes"]}
        if "neo4j" in name:
            volumes |= {each["metadata"]["name"] for each in claims}

        mounts = [mount for each in containers(template) for mount in each["volumeMounts"]]
        assert {each["name"] for each in mounts} == volumes, name
        if "neo4j" not in name:
            written = {each["mountPath"] for each in mounts if not each.get("readOnly")}
            home = last(DOCKER / "trainer.Dockerfile", "VOLUME").value
            assert {"/tmp", home} <= written


def test_labels_and_ports_meet(whole):
    templates = dict(pods(whole))
    labels = {name: template["metadata"]["labels"] for name, template in templates.items()}
    ports = {
        name: {
            port["name"]: port["containerPort"]
            for each in containers(template)
            for port in each.get("ports", ())
        }
        for name, template in templates.items()
    }
    for service in (each for each in whole if each["kind"] == "Service"):
        (reached,) = [
            name
            for name in labels
            if selects({"matchLabels": service["spec"]["selector"]}, labels[name])
        ]
        (port,) = service["spec"]["ports"]
        assert ports[reached][port["targetPort"]] == port["port"]

    for each in whole:
        if each["kind"] in ("Deployment", "StatefulSet"):
            (own,) = [name for name in labels if selects(each["spec"]["selector"], labels[name])]
            assert own == each["metadata"]["name"]

    monitor = named(whole, "PodMonitor")
    scraped = {name for name in labels if selects(monitor["spec"]["selector"], labels[name])}
    assert scraped == {name for name in labels if re.search("trainer|metrics", name)}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert all(endpoint["port"] in ports[name] for name in scraped)


def test_the_network_is_closed_but_for_what_is_needed(objects):
    templates = dict(pods(objects))
    policies = [each for each in objects if each["kind"] == "NetworkPolicy"]
    for name, template in templates.items():
        (own,) = [
            each for each in policies if selects(each["spec"]["podSelector"], template["metadata"]["labels"])
        ]  # fmt: skip
        assert own["spec"]["policyTypes"] == ["Ingress", "Egress"], name
        doors = {port["port"] for rule in own["spec"].get("ingress", ()) for port in rule["ports"]}
        assert doors == {
            port["name"] for each in containers(template) for port in each.get("ports", ())
        }
        assert all(rule["from"] for rule in own["spec"].get("ingress", ()))
        uri = variables(containers(template)[0]).get("ARCHIVE_DB")
        ways = {port["port"] for rule in own["spec"].get("egress", ()) for port in rule["ports"]}
        assert uri is None or {urlsplit(uri).port, 53} <= ways <= {urlsplit(uri).port, 53, 443}


def test_the_environment_leads_to_the_server_of_the_release(objects):
    services = {
        f"bolt://{each['metadata']['name']}:{each['spec']['ports'][0]['port']}"
        for each in objects if each["kind"] == "Service"
    }  # fmt: skip
    for name, template in pods(objects):
        if "neo4j" not in name:
            given = {
                key: value for key, value in variables(containers(template)[0]).items() if value
            }
            given.pop("ARCHIVE_PASSWORD_FILE")
            settings = load(environment=given)
            assert settings.uri in services or settings.uri == EXTERNAL["database"]["uri"]


def test_jobs_follow_the_queue(whole):
    job = named(whole, "ScaledJob")["spec"]
    (trigger,) = job["triggers"]
    address = urlsplit(trigger["metadata"]["url"])
    service = named(whole, "Service", "-metrics")
    assert (
        address.netloc
        == f"{service['metadata']['name']}.nas.svc:{service['spec']['ports'][0]['port']}"
    )
    assert (address.path, address.query) == ("/queue", "study=a+%26+b")
    # Running jobs are subtracted from the number that the metric asks for: it must count their
    # proposals.
    assert (
        job["scalingStrategy"]["strategy"] == "default"
        and trigger["metadata"]["valueLocation"] == "open"
    )
    (container,) = containers(job["jobTargetRef"]["template"])
    assert f"--slots={trigger['metadata']['targetValue']}" in container["args"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert job["maxReplicaCount"] == 64


def test_trials_are_given_less_time_than_their_pod(objects):
    for _, template in pods(objects):
        for word in containers(template)[0].get("args", ()):
            if word.startswith("--grace="):
                assert (
                    float(word[8:].rstrip("s")) < template["spec"]["terminationGracePeriodSeconds"]
                )


def test_commands_are_those_of_the_package(objects):
    for _, template in pods(objects):
        (container,) = template["spec"]["containers"]
        words = container.get("args")
        if words is None:
            continue

        # Parsing refuses unknown options and values.
        name, *rest = [word.replace("first", "study") for word in words]
        parsed(name, *(["start"] if name == "trainer" else []), *rest)
        assert not any("e+" in word for word in words)


def test_images_are_those_of_this_release_and_of_compose(whole):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == __version__
    services = compose()["services"]
    images = {each["image"] for _, template in pods(whole) for each in containers(template)}
    assert images == {services[name]["image"] for name in ("neo4j", "trainer-cpu", "agent")}


def test_changed_options_are_another_job(tmp_path):
    """The template of a job cannot be changed."""
    names = [
        named(render(tmp_path, {"agents": {"first": {"budget": budget}}}), "Job")["metadata"][
            "name"
        ]
        for budget in (5, 5, 6)
    ]
    assert names[0] == names[1] != names[2]
    # What is not of its pod does not start a search again.
    others = {"networkPolicy": {"kedaNamespace": "k"}, "trainers": {"default": {"max": 16}}}
    same = render(tmp_path, {"agents": {"first": {"budget": 5}}, **others})
    assert named(same, "Job")["metadata"]["name"] == names[0]


def test_another_release_of_the_chart_is_another_job(tmp_path, monkeypatch):
    values = {"agents": {"first": {"budget": 5}}}
    before = named(render(tmp_path, values), "Job")
    later = tmp_path / "later"
    shutil.copytree(CHART, later)
    about = (later / "Chart.yaml").read_text().replace(__version__, "9.9.9")
    (later / "Chart.yaml").write_text(about)
    monkeypatch.setattr("tests.support.kubernetes.CHART", later)
    after = named(render(tmp_path, values), "Job")
    assert before["spec"]["template"] != after["spec"]["template"]
    assert before["metadata"]["name"] != after["metadata"]["name"]


def test_a_name_that_is_no_label_is_refused(tmp_path):
    """KEDA gives each trainer a label with the name of its group, and Kubernetes takes 63
    characters."""
    release = "architecture-search-production"
    path = tmp_path / "values.yaml"
    for group, code in (("a100-80gb-cluster-two", 1), ("a100-80gb", 0)):
        path.write_text(json.dumps({"trainers": {group: {}}}))
        done = helm(
            "template", release, str(CHART), "--kube-version=1.34.0", f"--values={path}", code=code
        )
        assert ("at most 63 can be a label" in done.stderr) == bool(code)


@pytest.mark.parametrize(
    ("cpu", "slots", "threads"),
    [
        ("4", 2, "2"),
        (4, 1, "4"),
        ("500m", 1, "1"),
        ("4000m", 2, "2"),
        ("2", 8, "1"),
        ("2.5", 1, "2"),
        (7.5, 1, "7"),
    ],
)
def test_a_trainer_uses_the_cores_that_it_requests(tmp_path, cpu, slots, threads):
    own = {"slots": slots, "autoscaling": False, "resources": {"requests": {"cpu": cpu}}}
    templates = dict(pods(render(tmp_path, {"trainers": {"default": own}})))
    (container,) = containers(templates["lab-nas-archive-trainer-default"])
    assert {"name": "OMP_NUM_THREADS", "value": threads} in container["env"]
    # The last one of a name wins in Kubernetes.
    of_site = {"env": [{"name": "OMP_NUM_THREADS", "value": "16"}], "trainers": {"default": own}}
    (container,) = containers(
        dict(pods(render(tmp_path, of_site)))["lab-nas-archive-trainer-default"]
    )
    assert [each["value"] for each in container["env"] if each["name"] == "OMP_NUM_THREADS"][
        -1
    ] == "16"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"trainerDefaults": {"slot": 2}}, "slot"),
        ({"database": {"uri": "bolt://me:geheim@host"}}, "uri"),
        ({"trainers": {"Big_GPU": {}}}, "Big_GPU"),
    ],
)
def test_a_wrong_value_is_refused(values, word, tmp_path):
    path = tmp_path / "values.yaml"
    path.write_text(json.dumps(values))
    done = helm("template", "lab", str(CHART), "--kube-version=1.34.0", f"--values={path}", code=1)
    assert word in done.stderr


def test_the_metrics_of_the_chart_answer_its_trigger(whole, archive, store_settings, tmp_path):
    """The pod's own command, on another port, and the trigger's path."""
    propose(archive, table(tmp_path), 3)
    assert archive.studies.counts("study")[State.WAITING] == 3
    (container,) = containers(dict(pods(whole))["lab-nas-archive-metrics"])
    words = [
        word.replace("9465", "0").replace("0.0.0.0", "127.0.0.1") for word in container["args"]
    ]
    trigger = named(whole, "ScaledJob")["spec"]["triggers"][0]["metadata"]
    with shell(store_settings, tmp_path) as user:
        server = user.starts(*words)
        (base,) = wait_until(lambda: re.findall(r"http://\S+(?=/metrics)", user.said), 60)
        with urlopen(f"{base}{urlsplit(trigger['url']).path}?study=study", timeout=30) as answer:
            assert json.load(answer)[trigger["valueLocation"]] == 3

        with urlopen(
            f"{base}{container['livenessProbe']['httpGet']['path']}", timeout=30
        ) as answer:
            assert answer.status == 200

        server.terminate()
        assert server.wait(30) == 0
