# The service for production, without the embedded MongoDB. compose.yaml runs it with MongoDB and Redis.

# The newest Python for which every package of requirements.lock has a wheel. docs/deployment.md says why.
ARG PYTHON=3.14

FROM python:${PYTHON}-slim-trixie AS build
# EXPORT=yes adds the 70 MB that `export --format parquet` needs.
ARG EXPORT=no
WORKDIR /build
# The pip of the base image installs into .venv, which needs none of its own.
RUN python -m venv --without-pip /opt/driver-analytics/.venv
COPY requirements.lock ./
RUN if [ "$EXPORT" = no ]; then sed -i '/^duckdb==/,/[^\\]$/d' requirements.lock; fi \
    && pip --python /opt/driver-analytics/.venv/bin/python install --no-cache-dir --no-compile --only-binary :all: \
        --require-hashes -r requirements.lock
COPY . ./
# Nothing needs setuptools, nor the tests of the packages, at run time.
RUN cd /opt/driver-analytics \
    && pip --python .venv/bin/python install --no-cache-dir --no-compile --no-deps --no-build-isolation /build \
    && pip --python .venv/bin/python uninstall --yes setuptools \
    && find .venv -name tests -type d -prune -exec rm -r {} + \
    && .venv/bin/python -m compileall -q -f --invalidation-mode unchecked-hash .venv/lib

FROM python:${PYTHON}-slim-trixie
# The base image has no bytecode of the standard library, and the user of the service could not write any. The tests of
# the standard library, if there are any, have files that do not compile.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin driver-analytics \
    && pip uninstall --yes pip \
    && python -m compileall -q --invalidation-mode unchecked-hash -x '/tests?/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
WORKDIR /opt/driver-analytics
COPY --from=build /opt/driver-analytics ./
ENV PATH=/opt/driver-analytics/.venv/bin:$PATH \
    BIND=0.0.0.0:8000
# By number, so that Kubernetes can check that it is not root.
USER 10001
EXPOSE 8000
# http.client uses no proxy, whatever HTTP_PROXY says.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "from http.client import HTTPConnection; \
service = HTTPConnection('127.0.0.1', 8000, timeout=2); service.request('GET', '/api/v1/livez'); \
exit(service.getresponse().status != 200)"]
CMD ["driver-analytics", "serve"]
