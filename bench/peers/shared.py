"""What the peers share: the shapes of responses, API keys, and summaries that are computed from trips at each request.

A shape is a dict of fields by name, a list with the shape of its elements, or a type.
"""

import datetime
import hashlib
import math
import os
import time

DATABASE = os.environ["MONGODB_DATABASE"]
MONGODB_URI = os.environ["MONGODB_URI"]
KEYS = "peer_keys"
OLDEST_FIRST = [("trip_start_time", 1), ("trip_id", 1)]
DETAIL_LIMIT, DELAY_MS = 5, 4 * 3_600_000


def all_of(kind, *names):
    """Return a shape whose fields all have the same type."""
    return dict.fromkeys(names, kind)


COUNTS = all_of(int, "phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
COUNTS |= all_of(float, "phone_use_time_seconds", "overspeeding_time_seconds")
AMOUNTS = all_of(float, "distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
NAMES = all_of(str | None, "first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date")
DRIVER = {"driver_id": str, **NAMES}
TRIP = {
    **all_of(str, "trip_id", "driver_id"),
    **all_of(int, "trip_start_time", "trip_end_time"),
    **AMOUNTS,
    **all_of(float, "start_latitude", "start_longitude", "end_latitude", "end_longitude", "night_driving_miles"),
    "insurance_period": int | None,
    "event_summary": COUNTS,
}
EVENT = {
    "event_name": str,
    **all_of(int, "event_type", "event_start_timestamp", "event_end_timestamp"),
    **all_of(float, "event_start_latitude", "event_start_longitude", "event_end_latitude", "event_end_longitude"),
    "event_data": dict[str, float],
}
TRIP_DETAIL = {
    **TRIP,
    "focus_area": all_of(bool, "is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding"),
    "trail_path": [{"timestamp": int, **all_of(float, "latitude", "longitude", "course")}],
    "events": [EVENT],
}
# For each focus flag its numerator, factor, denominator, cap and weight.
BEHAVIOURS = {
    "is_phone_use": ("phone_use_time_seconds", 1, "duration_seconds", 0.15, 35),
    "is_overspeeding": ("overspeeding_time_seconds", 1, "duration_seconds", 0.20, 30),
    "is_hard_brake": ("hard_brake_count", 100, "distance_miles", 20, 20),
    "is_acceleration": ("rapid_acceleration_count", 100, "distance_miles", 20, 15),
}
GRADES = {"excellent": 85, "good": 70, "fair": 50, "poor": 0}
SUMMARY = {
    "fm_score": float,
    "fm_grade": str,
    "trip_count": int,
    **AMOUNTS,
    "events_summary": COUNTS,
    "focus_area": all_of(bool, *BEHAVIOURS),
}
DAY = {**SUMMARY, "date": str}
WEEK = {**SUMMARY, "start_date": str, "end_date": str, "daily_summary_breakdown": [DAY]}
PAGE = {"count": int, "current_page": int, "next_page": int | None, "limit": int}
RESPONSES = {
    "drivers": {**PAGE, "drivers": [DRIVER]},
    "trips": {**PAGE, "trips": [TRIP]},
    "detail": {**PAGE, "trips": [TRIP_DETAIL]},
    "daily": {"data": [{"driver_info": DRIVER, "driving_summary": DAY}]},
    "weekly": {"data": [{"driver_info": DRIVER, "driving_summary": WEEK}]},
    "health": {"status": str},
}
# Without the trails.
LISTED = {"_id": 0, **dict.fromkeys(TRIP, 1)}


def digest(authorization):
    """Return the digest of the key in an Authorization header, by which it is stored."""
    return hashlib.sha256(authorization.removeprefix("APIKEY ").encode()).hexdigest()


def page_of(name, documents, count, page, limit):
    """Return a page of documents."""
    next_page = page + 1 if page * limit < count else None
    return {"count": count, "current_page": page, "next_page": next_page, "limit": limit, name: documents}


def is_visible():
    """Return the condition for trips that ended some hours ago."""
    return {"trip_end_time": {"$lte": int(time.time() * 1000) - DELAY_MS}}


def epoch_ms(date):
    """Return the start of a UTC date in epoch milliseconds."""
    return int(datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp() * 1000)


def pipeline(fleet, driver_ids, kind, start):
    """Return the pipeline over `trips` with one document per driver and date: both in `_id`, trip_count and totals."""
    end = start + datetime.timedelta(1 if kind == "daily" else 7)
    times = {"$gte": epoch_ms(start), "$lt": epoch_ms(end)}
    date = {"$dateToString": {"date": {"$toDate": "$trip_start_time"}, "format": "%Y-%m-%d"}}
    totals = {name: {"$sum": f"${name}"} for name in AMOUNTS}
    totals |= {name: {"$sum": f"$event_summary.{name}"} for name in COUNTS}
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}, "trip_start_time": times}},
        {"$group": {"_id": {"driver_id": "$driver_id", "date": date}, "trip_count": {"$sum": 1}, **totals}},
        {"$sort": {"_id": 1}},
    ]


def aggregate(kind, start, driver_ids, drivers, days):
    """Return the daily or weekly response. `drivers` are documents, and `days` those of the pipeline."""
    driver_by_id, days_by_id = {driver["driver_id"]: driver for driver in drivers}, {}
    for day in days:
        days_by_id.setdefault(day["_id"]["driver_id"], []).append(day)
    summaries = {one: _day(own[0]) if kind == "daily" else _week(start, own) for one, own in days_by_id.items()}
    return {"data": [{"driver_info": driver_by_id[one], "driving_summary": summaries[one]} for one in driver_ids]}


def _week(start, days):
    totals = {name: sum(day[name] for day in days) for name in ("trip_count", *AMOUNTS, *COUNTS)}
    end = start + datetime.timedelta(6)
    breakdown = [_day(day) for day in days]
    return {**_summary(totals), "start_date": str(start), "end_date": str(end), "daily_summary_breakdown": breakdown}


def _day(totals):
    return {**_summary(totals), "date": totals["_id"]["date"]}


def _summary(totals):
    shares = {
        flag: (factor * totals[numerator] / totals[denominator] if totals[denominator] else 0) / cap
        for flag, (numerator, factor, denominator, cap, _) in BEHAVIOURS.items()
    }
    loss = sum(BEHAVIOURS[flag][-1] * min(1, share) for flag, share in shares.items())
    score = math.floor((100 - loss) * 10 + 0.5) / 10
    return {
        "fm_score": score,
        "fm_grade": next(name for name, lowest in GRADES.items() if score >= lowest),
        "trip_count": totals["trip_count"],
        **{name: totals[name] for name in AMOUNTS},
        "events_summary": {name: totals[name] for name in COUNTS},
        "focus_area": {flag: share >= 0.5 for flag, share in shares.items()},
    }
