# The server in a container. docs/container.md says how to run it.
#
#   docker build --tag angelhair .
#
# The Python version is the one that the lock files were made with and the tests run on.
ARG PYTHON_VERSION=3.11

FROM python:${PYTHON_VERSION}-slim-bookworm AS build
# Behind a mirror: docker build --build-arg PIP_INDEX_URL=…; nothing of it stays in the image.
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/angelhair && python -m venv /opt/build
WORKDIR /source
# The packages first: they change less often than the source, so this layer is kept.
COPY requirements/container.txt requirements/build.txt requirements/
RUN /opt/angelhair/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements/container.txt \
 && /opt/build/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
# What is not needed to serve does not come along: neither the build tools nor the installer.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
 && /opt/angelhair/bin/pip install --no-deps --no-index /wheel/*.whl \
 && /opt/angelhair/bin/pip uninstall --yes setuptools pip

FROM python:${PYTHON_VERSION}-slim-bookworm
RUN groupadd --system --gid 10001 angelhair \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin angelhair \
 && install --directory --owner 10001 --group 10001 --mode 0750 /data
COPY --from=build /opt/angelhair /opt/angelhair
COPY --chmod=0755 container/entrypoint.sh container/healthcheck.py /opt/angelhair/container/
# In a container the loopback address reaches nobody, so it listens everywhere and is open, which it says loudly at the
# start. Who may reach it is decided by the port mapping.
ENV PATH=/opt/angelhair/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    ANGELHAIR_HOST=0.0.0.0 \
    ANGELHAIR_OPEN=true
# The embedded file goes to angelhair-data in here. A variable for it would be one store said too many with Cassandra.
WORKDIR /data
VOLUME /data
EXPOSE 9324
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "/opt/angelhair/container/healthcheck.py"]
ENTRYPOINT ["/opt/angelhair/container/entrypoint.sh"]
CMD []
