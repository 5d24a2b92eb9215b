"""The benchmark: compares the service with the floor, and with its peer, the same API in FastAPI.

It needs wrk, redis-server and the peer's environment, which `make bench` installs.
"""
