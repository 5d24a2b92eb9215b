"""Run the ASGI application `module:name` with uvicorn and uvloop. BIND and WEB_CONCURRENCY are in the environment."""

import multiprocessing
import os
import socket
import sys

import uvicorn


def serve(application):
    """Run a worker with its own socket; the workers of uvicorn would share one."""
    host, _, port = os.environ["BIND"].partition(":")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, int(port)))
        config = uvicorn.Config(application, loop="uvloop", http="httptools", access_log=False, log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    workers = [
        multiprocessing.Process(target=serve, args=sys.argv[1:], daemon=True)
        for _ in range(int(os.environ["WEB_CONCURRENCY"]))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
