output "network" {
  value = sim_network.main.id
}

output "subnets" {
  value = { for name, zone in module.zone : name => zone.cidr }
}

output "password" {
  value     = sim_password.db.result
  sensitive = true
}
