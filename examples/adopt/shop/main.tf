terraform {
  required_providers {
    local  = { source = "hashicorp/local" }
    random = { source = "hashicorp/random" }
    sim    = { source = "hykube/sim" }
    time   = { source = "hashicorp/time" }
  }
}

provider "sim" {
  region = "eu-central-1"
  token  = var.token
}

resource "random_pet" "name" {}

resource "time_static" "founded" {}

resource "sim_network" "main" {
  name = "adopt-${random_pet.name.id}"
  cidr = "10.80.0.0/16"
  tags = { founded = time_static.founded.rfc3339 }
}

resource "sim_bucket" "logs" {
  count = 2
  name  = "adopt-logs-${count.index}"
}

resource "sim_password" "db" {
  length = 20
}

module "zone" {
  source     = "./zone"
  for_each   = var.zones
  network_id = sim_network.main.id
  name       = each.key
  number     = each.value
}

resource "local_file" "inventory" {
  filename = "${var.directory}/inventory.txt"
  content  = join("", [for name, zone in module.zone : "${name} ${zone.cidr}\n"])
}
