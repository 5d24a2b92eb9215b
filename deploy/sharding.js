// Shards the collections that grow (docs/scaling.md has the reasons). The commands have to have made them before:
//
//     mongosh "mongodb://.../driver_analytics" deploy/sharding.js
//
// Each key begins an index that is there already, and every unique index of its collection.
const SHARD_KEYS = {
  "drivers": {"fleet": 1, "driver_id": 1},
  "trips": {"fleet": 1, "trip_id": 1},
  "daily_summaries": {"fleet": 1, "day": 1},
  "served_spans": {"fleet": 1, "driver_id": 1},
  "served_drivers": {"fleet": 1, "number": 1},
  "served_trackings": {"fleet": 1, "tracking_id": 1},
  "report_files.chunks": {"files_id": 1, "n": 1}
};

sh.enableSharding(db.getName());
for (const [name, key] of Object.entries(SHARD_KEYS)) {
  sh.shardCollection(`${db.getName()}.${name}`, key);
}
