// Shards the collections that grow (docs/scaling.md has the reasons). The commands have to have made them before:
//
//     mongosh "mongodb://.../driver_analytics" deploy/sharding.js
//
// Each key begins an index that is there already, and every unique index of its collection.
const SHARD_KEYS = {
  "drivers": {"fleet": 1, "driver_id": 1},
  "trips": {"fleet": 1, "trip_id": 1},
  "fleet_drivers": {"fleet": 1},
  "driver_periods": {"fleet": 1, "period": 1, "driver_id": 1},
  "trip_details": {"fleet": 1, "trip_id": 1},
  "report_files.chunks": {"files_id": 1}
};

sh.enableSharding(db.getName());
for (const [name, key] of Object.entries(SHARD_KEYS)) {
  sh.shardCollection(`${db.getName()}.${name}`, key);
}
