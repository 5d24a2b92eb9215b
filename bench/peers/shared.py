"""Functions that the peers share: keys, and summaries that are computed from the trips for each request."""

import datetime
import hashlib
import math
import time

DAYS_A_WEEK = 7
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
EVENTS = (
    "phone_use_count",
    "rapid_acceleration_count",
    "hard_brake_count",
    "overspeeding_count",
    "phone_use_time_seconds",
    "overspeeding_time_seconds",
)
# Focus flag, numerator, factor, denominator, cap, weight.
BEHAVIOURS = (
    ("is_phone_use", "phone_use_time_seconds", 1, "duration_seconds", 0.15, 35),
    ("is_overspeeding", "overspeeding_time_seconds", 1, "duration_seconds", 0.20, 30),
    ("is_hard_brake", "hard_brake_count", 100, "distance_miles", 20, 20),
    ("is_acceleration", "rapid_acceleration_count", 100, "distance_miles", 20, 15),
)
# A trip's UTC date.
DATE = {"$dateToString": {"date": {"$toDate": "$trip_start_time"}, "format": "%Y-%m-%d"}}
GRADES = (("excellent", 85), ("good", 70), ("fair", 50), ("poor", 0))


def digest(authorization):
    """Return the digest of the key in an Authorization header."""
    scheme, _, key = authorization.partition(" ")
    return hashlib.sha256(key.encode()).hexdigest() if scheme.lower() == "apikey" else ""


def is_live(key):
    """Return whether a stored key is valid."""
    return bool(key and not key["revoked_at"] and (key["expires_at"] or math.inf) > time.time() * 1000)


def epoch_ms(date):
    """Return the start of a UTC date in epoch milliseconds."""
    return int(datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp() * 1000)


def pipeline(fleet, driver_ids, start, days):
    """Return the pipeline over `trips` with one document per driver and date: both in `_id`, trip_count and totals."""
    end = start + datetime.timedelta(days)
    times = {"$gte": epoch_ms(start), "$lt": epoch_ms(end)}
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}, "trip_start_time": times}},
        {
            "$group": {
                "_id": {"driver_id": "$driver_id", "date": DATE},
                "trip_count": {"$sum": 1},
                **{name: {"$sum": f"${name}"} for name in AMOUNTS},
                **{name: {"$sum": f"$event_summary.{name}"} for name in EVENTS},
            }
        },
        {"$sort": {"_id": 1}},
    ]


def rows_of(drivers, summaries, driver_ids):
    """Return the elements of an aggregate. A driver who did not drive has no summary."""
    return [
        {"driver_info": drivers[id_], **({"driving_summary": summaries[id_]} if id_ in summaries else {})}
        for id_ in dict.fromkeys(driver_ids)
    ]


def daily(rows):
    """Return the Daily summary of each driver, from the documents of the pipeline."""
    return {row["_id"]["driver_id"]: _day(row) for row in rows}


def weekly(rows, start):
    """Return the Weekly summary of each driver, from the documents of the pipeline."""
    weeks = {}
    for row in rows:
        weeks.setdefault(row["_id"]["driver_id"], []).append(row)
    end = start + datetime.timedelta(DAYS_A_WEEK - 1)
    return {
        driver_id: {
            **_summary({name: sum(day[name] for day in days) for name in ("trip_count", *AMOUNTS, *EVENTS)}),
            "start_date": start.isoformat(),
            "end_date": end.isoformat(),
            "daily_summary_breakdown": [_day(day) for day in days],
        }
        for driver_id, days in weeks.items()
    }


def _day(row):
    return {**_summary(row), "date": row["_id"]["date"]}


def _summary(totals):
    shares = {
        flag: (factor * totals[numerator] / totals[denominator] if totals[denominator] else 0) / cap
        for flag, numerator, factor, denominator, cap, _ in BEHAVIOURS
    }
    loss = sum(weight * min(1, shares[flag]) for flag, *_, weight in BEHAVIOURS)
    score = math.floor((100 - loss) * 10 + 0.5) / 10
    return {
        "fm_score": score,
        "fm_grade": next(name for name, lowest in GRADES if score >= lowest),
        "trip_count": totals["trip_count"],
        **{name: totals[name] for name in AMOUNTS},
        "events_summary": {name: totals[name] for name in EVENTS},
        "focus_area": {flag: share >= 0.5 for flag, share in shares.items()},
    }
