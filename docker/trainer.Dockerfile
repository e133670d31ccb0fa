# A trainer, on a GPU where the host lends one, else on its cores.
#
#   docker build --file docker/trainer.Dockerfile --tag nas-archive-trainer:0.1.0 .
#   docker run --gpus all --env ARCHIVE_DB=neo4j://host:7687 … nas-archive-trainer:0.1.0 trainer --slots 2
#
# The wheels of PyTorch bring the libraries of CUDA with them: of the base image only the smallest flavour is needed,
# of the same CUDA release as docker/constraints.txt has its PyTorch from.

FROM python:3.12.12-slim-bookworm AS wheel
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM nvidia/cuda:13.2.1-base-ubuntu24.04
# Security updates of Ubuntu arrive when the image is rebuilt: its packages are not pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --home-dir /var/lib/archive --uid 10001 --user-group --shell /usr/sbin/nologin archive \
    && python3 -m venv /opt/archive
ENV PATH=/opt/archive/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ARCHIVE_HOME=/var/lib/archive
COPY docker/constraints.txt /opt/archive/constraints.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --constraint /opt/archive/constraints.txt /wheels/*.whl

USER 10001:10001
WORKDIR /var/lib/archive
VOLUME /var/lib/archive
HEALTHCHECK --interval=60s --timeout=30s --start-period=60s --retries=3 \
    CMD ["archive", "trainer", "status", "--healthcheck"]
ENTRYPOINT ["archive"]
CMD ["trainer"]
