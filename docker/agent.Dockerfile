# A search agent, and every other command of the archive: no GPU, PyTorch for processors only.
#
#   docker build --file docker/agent.Dockerfile --tag nas-archive-agent:0.1.0 .
#   docker run --env ARCHIVE_DB=neo4j://host:7687 … nas-archive-agent:0.1.0 search --agent nasbot --trainers 0

FROM python:3.12.12-slim-bookworm AS wheel
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12.12-slim-bookworm
RUN useradd --create-home --home-dir /var/lib/archive --uid 10001 --user-group --shell /usr/sbin/nologin archive \
    && python3 -m venv /opt/archive
ENV PATH=/opt/archive/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ARCHIVE_HOME=/var/lib/archive
COPY docker/constraints.txt /opt/archive/constraints.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --constraint /opt/archive/constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu /wheels/*.whl

USER 10001:10001
WORKDIR /var/lib/archive
VOLUME /var/lib/archive
HEALTHCHECK --interval=60s --timeout=30s --start-period=60s --retries=3 \
    CMD ["archive", "doctor"]
ENTRYPOINT ["archive"]
CMD ["search", "--trainers", "0"]
