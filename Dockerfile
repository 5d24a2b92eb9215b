# The service for production, without the embedded MongoDB. compose.yaml runs it with MongoDB and Redis.

FROM python:3.11-slim-trixie AS build
WORKDIR /opt/driver-analytics
RUN python -m venv .venv
COPY requirements.lock ./
RUN .venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . ./
RUN .venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
    && .venv/bin/python -m compileall -q -f --invalidation-mode unchecked-hash app schemas scripts .venv/lib

FROM python:3.11-slim-trixie
# The base image has no bytecode of the standard library, and the user of the service could not write any.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin driver-analytics \
    && python -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib/python3.11
WORKDIR /opt/driver-analytics
COPY --from=build /opt/driver-analytics ./
# matplotlib, which `reports build` uses, needs a folder that it can write to.
ENV PATH=/opt/driver-analytics/.venv/bin:$PATH \
    BIND=0.0.0.0:8000 \
    MPLCONFIGDIR=/tmp/matplotlib
# By number, so that Kubernetes can check that it is not root.
USER 10001
EXPOSE 8000
# http.client uses no proxy, whatever HTTP_PROXY says.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "from http.client import HTTPConnection; \
service = HTTPConnection('127.0.0.1', 8000, timeout=2); service.request('GET', '/api/v1/livez'); \
exit(service.getresponse().status != 200)"]
CMD ["driver-analytics", "serve"]
