"""Routes on the roads of the town: the line to drive, and the points on it where the speed may change."""

import functools
import itertools
import math
from typing import NamedTuple

from scripts.demo.geometry import Point
from scripts.demo.town import MOTORWAY_MPH, STREET_MPH, Node, Roads, find_predecessors, get_town

TURN_MPS2 = 2.4  # comfortable sideways acceleration
SHARP_TURN = math.radians(35)  # below this angle a corner is a bend, and drivers do not slow down


class Mark(NamedTuple):
    """A point of a route where the speed may change: distance from the start, limit from here on, speed of a turn."""

    meters: float
    limit_mph: int
    turn_mps: float = math.inf
    stop_probability: float = 0


class Route(NamedTuple):
    """The line to drive, as (metres from the start, east, north), and its marks, about every 50 m."""

    line: list[tuple[float, float, float]]
    marks: list[Mark]

    def add_point(self, x: float, y: float) -> float:
        """Continue the line to a point. Returns the length of the line in metres."""
        meters = self.line[-1][0] + math.dist(self.line[-1][1:], (x, y))
        self.line.append((meters, x, y))
        return meters

    def add_straight(self, x: float, y: float, limit_mph: int) -> float:
        """Continue the line to a point, with marks on the way. Returns the length of the line in metres."""
        begin = self.line[-1][0]
        meters = self.add_point(x, y) - begin
        pieces = max(3, round(meters / 50))  # at least three, so that the car moves between two stops
        self.marks.extend(Mark(begin + meters * piece / pieces, limit_mph) for piece in range(1, pieces))
        return begin + meters

    def add_corner(self, a: Point, b: Point, c: Point, limits_mph: tuple[int, int], stop_probability: float) -> None:
        """Continue the line towards b and around the corner there, in the direction of c."""
        limit_in, limit_out = limits_mph
        length, next_length = math.dist(a, b), math.dist(b, c)
        along = ((b[0] - a[0]) / length, (b[1] - a[1]) / length)
        onward = ((c[0] - b[0]) / next_length, (c[1] - b[1]) / next_length)
        cross, dot = along[0] * onward[1] - along[1] * onward[0], along[0] * onward[0] + along[1] * onward[1]
        angle = abs(math.atan2(cross, dot))
        is_turn = angle > SHARP_TURN
        radius = _corner_radius(max(limits_mph), is_turn=is_turn)
        cut = min(radius * math.tan(angle / 2), 0.45 * length, 0.45 * next_length)
        end = self.add_straight(b[0] - along[0] * cut, b[1] - along[1] * cut, limit_in)
        if stop_probability:
            self.marks[-1] = Mark(max(end - 8, self.marks[-1].meters), limit_in, stop_probability=stop_probability)
        turn_mps = math.sqrt(TURN_MPS2 * cut / math.tan(angle / 2)) if is_turn else math.inf
        if is_turn:
            self.marks.append(Mark(end, limit_in, turn_mps))
        for share in (0.25, 0.5, 0.75, 1) if cut > 0.5 else ():
            back, ahead = cut * (1 - share) ** 2, cut * share**2  # a quadratic Bezier curve around the node
            end = self.add_point(b[0] - along[0] * back + onward[0] * ahead, b[1] - along[1] * back + onward[1] * ahead)
        self.marks.append(Mark(end, limit_out, turn_mps))


@functools.cache
def get_route(origin: Node, destination: Node) -> Route:
    """Return the fastest route between two places, with rounded corners."""
    town, nodes = get_town(), _get_fastest_path(origin, destination)
    points = [town.nodes[node] for node in nodes]
    limits = [town.roads[a][b][0] for a, b in itertools.pairwise(nodes)]
    route = Route([(0.0, *points[0])], [Mark(0, limits[0])])
    for k, corner in enumerate(zip(points, points[1:], points[2:], strict=False)):
        limits_mph = (limits[k], limits[k + 1])
        route.add_corner(*corner, limits_mph, _stop_probability(town.roads, nodes[k + 1], limits_mph))
    route.marks.append(Mark(route.add_straight(*points[-1], limits[-1]), limits[-1]))
    return route


def _get_fastest_path(origin: Node, destination: Node) -> list[Node]:
    predecessors, nodes = _find_predecessors(origin), [destination]
    while nodes[-1] != origin:
        nodes.append(predecessors[nodes[-1]])
    nodes.reverse()
    return nodes


@functools.cache
def _find_predecessors(origin: Node) -> dict[Node, Node]:
    return find_predecessors(get_town().roads, origin)


def _corner_radius(limit_mph: int, *, is_turn: bool) -> float:
    """Return the radius of a turn or a bend in metres; `limit_mph` is that of the faster road."""
    if is_turn:
        return 120 if limit_mph == MOTORWAY_MPH else 12
    return 1_500 if limit_mph == MOTORWAY_MPH else 300 if limit_mph > STREET_MPH else 60


def _stop_probability(roads: Roads, node: Node, limits_mph: tuple[int, int]) -> float:
    """Return the probability of a stop before a junction.

    There are traffic lights where arterials meet, and stop signs where a street joins an arterial.
    """
    limit_in, limit_out = limits_mph
    if node[0] != "ring" and sum(limit in (35, 45) for limit, _ in roads[node].values()) >= 3:
        return 0.45
    return 1 if limit_in == STREET_MPH < limit_out else 0
