"""The road network of the demonstration fleet's town, and the places that its drivers go to.

The town stands on open farmland in Kansas: streets (25 mph), arterials (35 and 45 mph), a motorway ring (65 mph), a
suburb reached by motorway, and an airport.
"""

import functools
import heapq
import itertools
import math
import random
from typing import NamedTuple

from scripts.demo.drivers import DRIVERS
from scripts.demo.geometry import MPS_PER_MPH, Point
from scripts.demo.rng import make_rng

Node = tuple[str, int, int]  # kind and numbers, such as ("grid", -3, 7)
Roads = dict[Node, dict[Node, tuple[int, float]]]  # speed limit (mph) and cost (s) of the road between two nodes

STREET_MPH, MOTORWAY_MPH = 25, 65
JUNCTION_SECONDS = 4  # added to the cost of each street
SUBURB_CENTER = (14_300, 2_600)
AIRPORT = ("airport", 0, 0)


class Town(NamedTuple):
    """The position of each node, the roads, and the places that people drive to, by kind."""

    nodes: dict[Node, Point]
    roads: Roads
    places: dict[str, list[Node]]

    def add_road(self, a: Node, b: Node, limit_mph: int, dislike: float = 1) -> None:
        """Connect two nodes in both directions. `dislike` multiplies the cost of the road."""
        seconds = math.dist(self.nodes[a], self.nodes[b]) / (limit_mph * MPS_PER_MPH)
        cost = seconds * dislike + (JUNCTION_SECONDS if limit_mph == STREET_MPH else 0)
        self.roads.setdefault(a, {})[b] = self.roads.setdefault(b, {})[a] = (limit_mph, cost)

    def add_curve(self, start: Node, end: Node, limit_mph: int) -> None:
        """Connect two nodes by an S-shaped road with a node about every 280 m."""
        (x0, y0), (x1, y1) = self.nodes[start], self.nodes[end]
        steps = round(abs(x1 - x0) / 280)
        chain = [start, *((f"to {end[0]}", step, 0) for step in range(1, steps)), end]
        for step in range(1, steps):
            share = step / steps
            self.nodes[chain[step]] = (x0 + (x1 - x0) * share, y0 + (y1 - y0) * (1 - math.cos(math.pi * share)) / 2)
        for a, b in itertools.pairwise(chain):
            self.add_road(a, b, limit_mph)

    def add_grid(self, kind: str, center: Point, half: int, block: float, rng: random.Random) -> None:
        """Add a slightly irregular grid of streets of `block` metres. Every fifth line is an arterial."""
        lines = range(-half, half + 1)
        # With streets of equal cost, a route would zigzag.
        dislike = {(axis, line): rng.uniform(0.9, 1.2) for axis in "xy" for line in lines}
        self._add_grid_nodes(kind, center, half, block, rng)
        for i, j in itertools.product(lines, lines):
            for other, axis, line in (((kind, i + 1, j), "y", j), ((kind, i, j + 1), "x", i)):
                if (kind, i, j) not in self.nodes or other not in self.nodes:
                    continue
                if line % 5 == 0:
                    self.add_road((kind, i, j), other, 35 if max(abs(i), abs(j)) <= 10 else 45)
                elif rng.random() < 0.8:
                    self.add_road((kind, i, j), other, STREET_MPH, dislike[axis, line])

    def _add_grid_nodes(self, kind: str, center: Point, half: int, block: float, rng: random.Random) -> None:
        lines = range(-half, half + 1)
        for i, j in itertools.product(lines, lines):
            x, y = center[0] + i * block, center[1] + j * block
            is_street, in_lake = i % 5 and j % 5, math.hypot(x + 1_500, y - 2_450) < 480
            if abs(i) + abs(j) > 1.6 * half or (is_street and (in_lake or math.hypot(i, j) > 1.05 * half)):
                continue
            x += 90 * math.sin(y / 1_150 + 0.6) + rng.gauss(0, 11 if is_street else 0)
            y += 70 * math.sin(x / 950 - 0.4) + rng.gauss(0, 11 if is_street else 0)
            self.nodes[kind, i, j] = (x, y)

    def add_places(self, kind: str, count: int, center: Point, radius_meters: float, rng: random.Random) -> None:
        """Put `count` places within a radius of `center`, each in the middle of a block of a different street."""
        reachable = find_predecessors(self.roads, ("grid", 0, 0))
        streets = [
            (a, b)
            for a in reachable
            for b, (limit, _) in self.roads[a].items()
            if limit == STREET_MPH and a[0] == b[0] and a < b and math.dist(self.nodes[a], center) < radius_meters
        ]
        for number, (a, b) in enumerate(rng.sample(streets, count)):
            place, share = (f"{kind} place", number, 0), rng.uniform(0.35, 0.65)
            (ax, ay), (bx, by) = self.nodes[a], self.nodes[b]
            self.nodes[place] = (ax + (bx - ax) * share, ay + (by - ay) * share)
            del self.roads[a][b], self.roads[b][a]
            self.add_road(a, place, STREET_MPH)
            self.add_road(place, b, STREET_MPH)
            self.places.setdefault(kind, []).append(place)


@functools.cache
def get_town() -> Town:
    """Return the town. It is always the same."""
    town, rng = Town({}, {}, {}), make_rng("town")
    town.add_grid("grid", (0, 0), 20, 200, rng)
    town.add_grid("village", SUBURB_CENTER, 4, 180, rng)
    _add_ring(town)
    town.add_curve(("ring", 9, 0), ("village", -4, 0), MOTORWAY_MPH)
    town.nodes[AIRPORT] = (-9_300, -2_900)
    town.add_curve(("ring", 195, 0), AIRPORT, 45)
    town.places["airport"] = [AIRPORT]
    town.add_places("town", len(DRIVERS), (0, 0), 4_500, rng)
    town.add_places("suburb", len(DRIVERS), SUBURB_CENTER, 1_000, rng)
    town.add_places("office", 8, (0, 0), 1_800, rng)
    town.add_places("site", 26, (0, 0), 4_500, rng)
    town.add_places("depot", 1, (3_000, -2_500), 500, rng)
    return town


def _add_ring(town: Town) -> None:
    """Add the motorway ring, and connect to it the arterials that leave the town."""
    ring: list[Node] = [("ring", degree, 0) for degree in range(0, 360, 3)]
    for node in ring:
        angle = math.radians(node[1])
        radius = 5_200 * (abs(math.cos(angle)) ** 3 + abs(math.sin(angle)) ** 3) ** (-1 / 3)  # a rounded square
        radius *= 1 + 0.04 * math.sin(3 * angle + 1)
        town.nodes[node] = (radius * math.cos(angle), radius * math.sin(angle))
    for a, b in itertools.pairwise([*ring, ring[0]]):
        town.add_road(a, b, MOTORWAY_MPH)
    for i, j in itertools.product((-20, -10, 0, 10, 20), repeat=2):
        if (abs(i) == 20) != (abs(j) == 20):
            end_of_arterial = town.nodes["grid", i, j]
            nearest = min(ring, key=lambda node: math.dist(town.nodes[node], end_of_arterial))
            town.add_road(("grid", i, j), nearest, 45)


def find_predecessors(roads: Roads, origin: Node) -> dict[Node, Node]:
    """Return, for each reachable node, the node before it on the fastest route from `origin` (Dijkstra's algorithm)."""
    predecessors, costs, queue = {origin: origin}, {origin: 0.0}, [(0.0, origin)]
    while queue:
        cost, node = heapq.heappop(queue)
        if cost > costs[node]:
            continue
        for other, (_, seconds) in roads[node].items():
            if cost + seconds < costs.get(other, math.inf):
                costs[other], predecessors[other] = cost + seconds, node
                heapq.heappush(queue, (cost + seconds, other))
    return predecessors
