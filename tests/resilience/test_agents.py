"""Agents behind the shipped proxies."""

import asyncio
import contextlib
import json
import re

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.resilience.load import TIMEOUT_SECONDS
from tests.resilience.processes import HOST, Agents
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find_drivers", "arguments": {}}}
MAX_BYTES = 2**20
CLIENTS = 4
# Calls between one restart and the next.
MORE = 100


@pytest.fixture(params=SHIPPED)
def agents(request, pair, tmp_path):
    """Two processes, which get responses of the service through the proxy, and the proxy before both."""
    both = [Agents(tmp_path, name) for name in ("agents-one", "agents-two")]
    proxy = Proxy(tmp_path, request.param, pair, both)
    with contextlib.ExitStack() as stack:
        for process in both:
            stack.enter_context(process.ask(f"http://{HOST}:{proxy.port}"))
        yield both, stack.enter_context(proxy)


def post(proxy, key, content, **headers):
    """Return the response to a request, of which `content` is the body."""
    headers |= {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": "application/json"}
    return httpx2.post(f"http://{HOST}:{proxy.port}/mcp", content=content, headers=headers, timeout=TIMEOUT_SECONDS)


def test_no_call_fails_while_each_process_and_each_instance_restarts(agents, pair, store, report):
    both, proxy = agents
    texts, is_done = [], asyncio.Event()

    async def call():
        headers = {"Authorization": f"Bearer {store.key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as sender,
            Client(streamable_http_client(f"http://{HOST}:{proxy.port}/mcp", http_client=sender)) as client,
        ):
            while not is_done.is_set():
                result = await client.call_tool("find_drivers", {})
                assert not result.is_error, result
                texts.append(result.content[0].text)

    def restart(process):
        process.stop()
        seen, enough = len(process.log_text()), len(texts) + MORE
        process.start()
        # Another one ends only when the proxy has found this one again.
        wait_until(lambda: len(texts) > enough)
        wait_until(lambda: process in pair or "POST /mcp" in process.log_text()[seen:])

    async def restart_all():
        for process in (*both, *pair):
            await asyncio.to_thread(restart, process)
        is_done.set()

    async def run():
        await asyncio.gather(restart_all(), *(call() for _ in range(CLIENTS)))

    asyncio.run(run())
    report(f"{len(texts)} calls of agents behind {proxy.words[0]} during four restarts: none failed")
    assert len({*texts}) == 1
    # Both have served some.
    assert all("POST /mcp" in process.log_text() for process in both)
    written = "".join(log.read_text() for log in proxy.log.parent.glob("*.log"))
    assert not re.search(f"Traceback|{store.key}", written)


def stream(content):
    """Return a body that is sent in chunks, without its length."""
    yield content


def test_a_body_of_1_mb_arrives_and_a_larger_one_is_refused(agents, store):
    _, proxy = agents
    most = json.dumps(CALL).encode().ljust(MAX_BYTES)
    for content in (most, stream(most)):
        assert post(proxy, store.key, content).json()["result"]["structuredContent"]["count"]
    refused = post(proxy, store.key, most + b" ", **{"X-Request-ID": "mine-7"})
    assert (refused.status_code, refused.json()) == (
        413,
        {"message": "The body must have at most 1 MB.", "error": "ContentTooLarge", "request_id": "mine-7"},
    )
    assert post(proxy, store.key, stream(most + b" ")).status_code == 413
