"""The benchmark: compares the service with the floor, and with its peers, the same API in other frameworks.

It needs wrk, redis-server and the peers' environments; `make bench` installs the latter.
"""
