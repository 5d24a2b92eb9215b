// Shards the collections that grow; docs/scaling.md explains the shard keys. Run it after a command has created the
// collections:
//
//     mongosh "mongodb://.../driver_analytics" deploy/sharding.js
//
// Each shard key is a prefix of an existing index, and of all unique indexes of its collection. An _id begins with the
// fleet.
const SHARD_KEYS = {
  "drivers": {"_id": 1},
  "driver_groups": {"_id": 1},
  "trips": {"_id": 1},
  "fleets": {"_id": 1},
  "fleet_drivers": {"fleet": 1},
  "driver_periods": {"fleet": 1, "period": 1, "driver_id": 1},
  "fleet_periods": {"fleet": 1},
  "trip_details": {"_id": 1},
  "trip_events": {"_id": 1},
  "trip_changes": {"fleet": 1},
  "report_files.chunks": {"files_id": 1}
};

sh.enableSharding(db.getName());
for (const [name, key] of Object.entries(SHARD_KEYS)) {
  sh.shardCollection(`${db.getName()}.${name}`, key);
}
