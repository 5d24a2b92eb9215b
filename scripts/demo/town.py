"""The roads of the demonstration fleet's town, and the places that its drivers go to.

The town stands on open farmland in Kansas: a grid of streets (25 mph) and arterials (35 and 45 mph), and a motorway (65
mph) south of it, which leads to a suburb.
"""

import functools
import heapq
import itertools
import math
import random
from typing import NamedTuple

Node = tuple[float, float]  # a crossing or an end of a road, in metres east and north of the town's centre

STREET_MPH, MOTORWAY_MPH = 25, 65
METERS_PER_MILE = 1609.344
MPS_PER_MPH = METERS_PER_MILE / 3600
BLOCK_METERS = 250


class Town(NamedTuple):
    """The speed limit (mph) of the road from a node to each of its neighbours, and where people live and go."""

    roads: dict[Node, dict[Node, int]]
    homes: dict[str, list[Node]]
    goals: list[Node]

    def add_road(self, a: Node, b: Node, limit_mph: int) -> None:
        """Connect two nodes in both directions."""
        self.roads.setdefault(a, {})[b] = self.roads.setdefault(b, {})[a] = limit_mph

    def add_grid(self, east: float, north: float, half: int) -> dict[tuple[int, int], Node]:
        """Add a square grid of slightly winding roads around a centre. Every fourth one is an arterial."""
        lines = range(-half, half + 1)
        nodes = {(i, j): _wind(east + BLOCK_METERS * i, north + BLOCK_METERS * j) for i in lines for j in lines}
        for (i, j), node in nodes.items():
            for other, line in (((i + 1, j), j), ((i, j + 1), i)):
                if other in nodes:
                    self.add_road(node, nodes[other], STREET_MPH if line % 4 else 35 if line % 12 else 45)
        return nodes


def _wind(x: float, y: float) -> Node:
    return (x + 90 * math.sin(y / 1_150 + 0.6), y + 70 * math.sin(x / 950 - 0.4))


@functools.cache
def get_town() -> Town:
    """Return the town. It is always the same."""
    town = Town({}, {}, [])
    grid, suburb = town.add_grid(0, 0, 12), town.add_grid(11_500, -4_200, 4)
    motorway = [(x, -3_800 + 450 * math.sin(x / 2_300)) for x in range(-3_250, 10_251, 250)]
    for a, b in itertools.pairwise(motorway):
        town.add_road(a, b, MOTORWAY_MPH)
    for i in (-12, -4, 4, 12):
        arterial = grid[i, -12]
        town.add_road(arterial, min(motorway, key=lambda node: math.dist(node, arterial)), 45)
    town.add_road(motorway[-1], suburb[-4, 0], 45)
    rng = random.Random(8)  # noqa: S311 - generated data, not a secret
    places, suburb_places = rng.sample(list(grid.values()), 75), rng.sample(list(suburb.values()), 22)
    town.homes.update(town=places[55:], suburb=suburb_places[2:])
    # The suburb is in the middle, so that it is among the goals of each driver who has many.
    town.goals.extend([*places[:30], *suburb_places[:2], *places[30:55]])
    return town


@functools.cache
def find_ways(destination: Node) -> dict[Node, Node]:
    """Return, for each node, the next one on the fastest way to `destination` (Dijkstra's algorithm)."""
    ways, costs, queue = {destination: destination}, {destination: 0.0}, [(0.0, destination)]
    while queue:
        cost, node = heapq.heappop(queue)
        for other, limit_mph in get_town().roads[node].items():
            seconds = cost + math.dist(node, other) / (limit_mph * MPS_PER_MPH)
            if seconds < costs.get(other, math.inf):
                costs[other], ways[other] = seconds, node
                heapq.heappush(queue, (seconds, other))
    return ways
