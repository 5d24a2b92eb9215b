# The service for production, without the embedded MongoDB. compose.yaml runs it with MongoDB and Redis.

FROM python:3.11-slim-trixie AS build
WORKDIR /opt/driver-analytics
RUN python -m venv .venv
COPY requirements.lock ./
RUN .venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . ./
RUN .venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
    && python -m compileall -q app schemas scripts

FROM python:3.11-slim-trixie
RUN useradd --system --uid 10001 --no-create-home driver-analytics
WORKDIR /opt/driver-analytics
COPY --from=build /opt/driver-analytics ./
# matplotlib, which `reports build` uses, needs a folder that it can write to.
ENV PATH=/opt/driver-analytics/.venv/bin:$PATH \
    BIND=0.0.0.0:8000 \
    MPLCONFIGDIR=/tmp/matplotlib
# By number, so that Kubernetes can check that it is not root.
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/api/v1/livez', timeout=2)"]
CMD ["driver-analytics", "serve"]
