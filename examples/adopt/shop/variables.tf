variable "token" {
  type      = string
  sensitive = true
}

variable "zones" {
  type = map(number)
}

variable "directory" {
  type    = string
  default = "/tmp/hykube-adopt"
}
