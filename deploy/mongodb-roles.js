// Creates or updates the roles of mongodb-roles.json, and creates a user of the same name for each role that has none.
// It asks for the password of each new user. Run it as a user who may create users, with mongodb-roles.json in the same
// folder:
//
//   mongosh 'mongodb://admin@db1,db2,db3/admin?replicaSet=rs0' deploy/mongodb-roles.js
//
// driver_analytics_service    for `serve`: reads the read models, keys and reports; cannot read the sources or write
// driver_analytics_importer   for the other commands: keys, import, groups, rollups, reports, demo, restore
// driver_analytics_eraser     for `erase`, `prune` and `fleets erase`: deletes drivers, groups, trips and keys, and builds
//                             what is derived from the rest; cannot add any of them
// driver_analytics_exporter   for `export`: reads drivers, groups, trips and read models; cannot write or read keys
// driver_analytics_follow     for `follow`: reads everything, writes the read models; cannot write the sources
// driver_analytics_mirror     for `mirror`: reads and writes drivers, trips and what is derived from them, reads groups; no
//                             keys, no reports
// driver_analytics_backup     for `backup`: reads everything; cannot write
//
// If you set MONGODB_DATABASE, it replaces driver_analytics in all these names. To run without a prompt, set the
// password of a user in NAME_PASSWORD, such as driver_analytics_service_PASSWORD.
const name = process.env.MONGODB_DATABASE || "driver_analytics";
const roles = JSON.parse(
  require("fs").readFileSync(`${__dirname}/mongodb-roles.json`, "utf8").replaceAll("driver_analytics", name)
);
const admin = db.getSiblingDB("admin");
for (const { createRole: role, ...rest } of roles) {
  if (admin.getRole(role)) admin.updateRole(role, rest);
  else admin.createRole({ role, ...rest });
  if (admin.getUser(role)) continue;
  print(`Password of the new user ${role}:`);
  admin.createUser({ user: role, pwd: process.env[`${role}_PASSWORD`] || passwordPrompt(), roles: [role] });
}
