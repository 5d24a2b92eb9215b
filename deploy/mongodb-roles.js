// Makes the roles of mongodb-roles.json, or sets them to what it says, and a user of the same name for each that has none
// yet; it asks for the user's password. To be run as a user who may make users, beside mongodb-roles.json:
//
//   mongosh 'mongodb://admin@db1,db2,db3/admin?replicaSet=rs0' deploy/mongodb-roles.js
//
// driver_analytics_service    serves: reads the read models, keys and reports, not the sources, and writes nothing
// driver_analytics_importer   runs all other commands: keys, import, rollups, reports, demo, restore
// driver_analytics_backup     runs the command backup: reads everything, and writes nothing
//
// MONGODB_DATABASE, where it is set, stands for driver_analytics in all these names. NAME_PASSWORD, such as
// driver_analytics_service_PASSWORD, is the password of a user where nobody is there to be asked.
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
