# The image: the service, the interpreter and the libraries that they are linked with, and nothing else.
# Built here is the wheel; then an environment with the wheel alone; then the root of the image from that.
# By tag, so that what is built has the base's latest repairs. A build that must be repeatable names a digest:
# --build-arg PYTHON=python:3.14-slim-trixie@sha256:...
ARG PYTHON=python:3.14-slim-trixie

FROM ${PYTHON} AS wheel
WORKDIR /source
RUN python -m pip install --no-cache-dir "build>=1.2"
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY converters converters
COPY cache cache
COPY tools tools
COPY aggregator aggregator
RUN python -m build --wheel --outdir /wheel .

FROM ${PYTHON} AS root
RUN python -m venv --without-pip /opt/specmux
COPY --from=wheel /wheel /wheel
RUN python -m pip --python /opt/specmux/bin/python install --no-cache-dir --no-compile --only-binary :all: \
    /wheel/specmux-*.whl
COPY container/image_root.py /
RUN python /image_root.py /opt/specmux /image

FROM scratch
COPY --from=root /image/ /
LABEL org.opencontainers.image.title="specmux" \
      org.opencontainers.image.description="One OpenAPI v3 endpoint for many Kubernetes-style API servers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.9.0"
# TMPDIR: the sockets between the service and its workers. /dev/shm is there, and may be written to, in every
# container; the workers' semaphores are there already.
ENV PATH=/opt/specmux/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONUTF8=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    TMPDIR=/dev/shm
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
# The orchestrator's probes ask /livez and /readyz; there is no shell to ask with in here.
HEALTHCHECK NONE
ENTRYPOINT ["specmux"]
CMD ["serve", "--config", "/etc/specmux/specmux.yaml"]
