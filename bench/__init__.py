"""The benchmark: the service beside the floor, and beside what one would otherwise write."""
