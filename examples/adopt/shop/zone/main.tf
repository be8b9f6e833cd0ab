terraform {
  required_providers {
    sim = { source = "hykube/sim" }
  }
}

variable "network_id" {
  type = string
}

variable "name" {
  type = string
}

variable "number" {
  type = number
}

resource "sim_subnet" "main" {
  network_id = var.network_id
  name       = "adopt-${var.name}"
  cidr       = "10.80.${var.number}.0/24"
}

output "cidr" {
  value = sim_subnet.main.cidr
}
