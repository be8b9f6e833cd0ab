package differential

import "fmt"

// words returns a value for one argument.
type words func(g *generator, at string) any

// kindWords has what the generator knows about a type in addition to its schema.
type kindWords struct {
	// weight is the frequency of the type. kind is the kind of its objects in the simulated cloud; empty if it has none
	// there.
	weight int
	kind   string
	// words holds values that the provider accepts, by the path of the argument; nil means that the argument is not
	// set.
	words map[string]words
	// refs lists attributes to which others may refer. drift lists fields that may change in the cloud.
	refs  []string
	drift map[string]words
	// always lists arguments that are always set.
	always []string
	// twice is true if two instances may exist at once, as createBeforeDestroy requires.
	twice bool
}

func word(g *generator) string {
	return []string{"alpha", "beta", "gamma", "delta", "ü", "a b", "x.y"}[g.IntN(7)]
}

func oneOf(values ...any) words {
	return func(g *generator, _ string) any { return values[g.IntN(len(values))] }
}

func name(g *generator, at string) any { return g.names[at] }

// refTo refers to an earlier resource of a type, or adds one.
func refTo(typ, attribute string) words {
	return func(g *generator, at string) any {
		other := g.earlier(at, typ)
		if other == "" {
			if g.config.Resources[at] != nil {
				return nil // it was added before there was any, and does not change
			}
			other = g.add(typ)
		}
		return "${" + other + "." + attribute + "}"
	}
}

func maybeRefTo(typ, attribute string) words {
	return func(g *generator, at string) any {
		if other := g.earlier(at, typ); other != "" {
			return "${" + other + "." + attribute + "}"
		}
		return nil
	}
}

func tags(g *generator, at string) any {
	m := map[string]any{}
	for range g.IntN(4) {
		m[[]string{"team", "env", "a b", "x.y"}[g.IntN(4)]] = g.text(at)
	}
	return m
}

func plainTags(g *generator, _ string) any {
	if g.IntN(4) == 0 {
		return nil
	}
	m := map[string]any{}
	for range 1 + g.IntN(2) {
		m[[]string{"team", "env", "rogue"}[g.IntN(3)]] = []string{"rogue", "infra"}[g.IntN(2)]
	}
	return m
}

func texts(n int) words {
	return func(g *generator, at string) any {
		list := []any{}
		for range g.IntN(n) {
			list = append(list, g.text(at))
		}
		return list
	}
}

// subnetBlock is a different block within every generated network.
func subnetBlock(g *generator, _ string) any { return fmt.Sprintf("10.0.%d.0/24", g.IntN(100)) }

func then(g *generator, _ string) any {
	return fmt.Sprintf("20%02d-0%d-1%dT0%d:00:00Z", 20+g.IntN(5), 1+g.IntN(9), g.IntN(10), g.IntN(10))
}

// vocabulary is by type. The generator does not use other types.
func vocabulary() map[string]kindWords {
	return map[string]kindWords{
		"sim_network": {
			weight: 3, kind: "network", twice: true, refs: []string{"id", "name", "cidr", "created_at"},
			words: map[string]words{"name": name, "cidr": oneOf("10.0.0.0/16", "10.0.0.0/17"), "tags": tags},
			drift: map[string]words{"tags": plainTags},
		},
		"sim_subnet": {
			weight: 3, kind: "subnet", twice: true, refs: []string{"id", "name", "cidr", "zone", "network_id"},
			words: map[string]words{"name": name, "cidr": subnetBlock, "network_id": refTo("sim_network", "id"), "zone": oneOf("zone-a", "zone-b"), "tags": tags},
			drift: map[string]words{"tags": plainTags, "zone": oneOf("zone-c")},
		},
		"sim_instance": {
			weight: 4, kind: "instance", twice: true, refs: []string{"id", "name", "private_ip", "size", "cpu", "updated_at", "status"},
			words: map[string]words{
				"name": name, "subnet_id": refTo("sim_subnet", "id"), "image": oneOf("debian-12", "debian-13", "ubuntu-24.04"),
				"size": oneOf("small", "medium", "large"), "cpu": oneOf(1, 2, "4", 8), "tags": tags, "metadata.priority": oneOf(0, 1, 7),
				"network_interface.address": oneOf("10.0.1.77", "10.0.1.78"), "network_interface.security_groups": texts(3),
				"timeouts.create": oneOf("1m", "2m"), "timeouts.update": oneOf("1m"), "timeouts.delete": oneOf("1m", "90s"),
				"replace_on": nil, "reboot_on": nil,
			},
			drift: map[string]words{"tags": plainTags, "size": oneOf("huge"), "cpu": oneOf(16), "status": oneOf("stopped"), "public": oneOf(true, false), "network_interfaces": oneOf([]any{}, []any{map[string]any{"address": "10.0.1.9"}})},
		},
		"sim_disk": {
			weight: 2, kind: "disk", twice: true, refs: []string{"id", "name", "size_gb", "type"},
			words: map[string]words{"name": name, "size_gb": oneOf(1, 2, 4, "8"), "type": oneOf("ssd", "hdd"), "instance_id": maybeRefTo("sim_instance", "id"), "tags": tags},
			drift: map[string]words{"tags": plainTags, "size_gb": oneOf(3, 16), "encrypted": oneOf(true)},
		},
		"sim_dns_record": {
			weight: 2, kind: "dns-record", refs: []string{"id", "fqdn", "ttl"},
			words: map[string]words{
				"name": name, "type": oneOf("A", "TXT"), "ttl": oneOf(60, 300, 600),
				"values": func(g *generator, at string) any { return append(texts(3)(g, at).([]any), "last") },
			},
			drift: map[string]words{"ttl": oneOf(7), "values": oneOf([]any{"rogue"}, []any{"last", "rogue"})},
		},
		"sim_bucket": {
			weight: 2, kind: "bucket", refs: []string{"id", "endpoint", "name"},
			words: map[string]words{"name": name, "tags": tags, "rule.days": oneOf(1, 2, 30), "rule.prefix": oneOf("a/", "b/", "c/", "")},
			drift: map[string]words{"tags": plainTags, "versioning": oneOf(true, false), "rules": oneOf([]any{}, []any{map[string]any{"prefix": "a/", "days": 1}})},
		},
		"sim_token": {
			weight: 1, kind: "token", twice: true, refs: []string{"id", "name"},
			words: map[string]words{"name": name, "scopes": texts(4)},
			drift: map[string]words{"scopes": oneOf([]any{"rogue"}, []any{})},
		},
		"sim_password": {
			weight: 1, refs: []string{"id", "length"},
			words: map[string]words{"length": oneOf(8, 12, 16), "keepers": tags},
		},
		"sim_database": {
			weight: 1, kind: "database", twice: true, refs: []string{"id", "address", "engine"},
			words: map[string]words{
				"name": name, "engine": oneOf("postgres"), "engine_version": oneOf("16", "17"), "storage_gb": oneOf(10, 20, 30), "tags": tags,
				"admin_password_wo": oneOf("secret-1", "secret-2"),
			},
			drift: map[string]words{"tags": plainTags, "storage_gb": oneOf(50)},
		},
		"conform6_thing": {
			weight: 3, twice: true, refs: []string{"id", "name", "label", "serial", "size"},
			words: map[string]words{"name": name, "behaviour": nil, "zone": oneOf("a", "b"), "token": oneOf("t1", "t2")},
		},
		"conform6_values": {
			weight: 4, twice: true, refs: []string{"id", "name"},
			words: map[string]words{"name": name, "behaviour": nil},
		},
		"conform5_thing": {
			weight: 4, twice: true, refs: []string{"id", "name", "serial", "size"},
			words: map[string]words{
				"name": name, "behaviour": nil, "zone": oneOf("a", "b"), "token": oneOf("t1", "t2"), "level": oneOf("info", "debug"),
				"address": oneOf("Here", "HERE", "there"), "id": nil, "ratio": oneOf(0.5, 1, "2.25"),
				"timeouts.create": oneOf("1m"), "timeouts.read": oneOf("1m"), "timeouts.update": oneOf("1m", "2m"), "timeouts.delete": oneOf("1m"),
			},
		},
		"time_offset": {
			weight: 1, refs: []string{"rfc3339", "unix", "id"}, always: []string{"base_rfc3339", "offset_days"},
			words: map[string]words{"base_rfc3339": then, "offset_days": oneOf(1, 7), "offset_hours": oneOf(1, -5), "offset_minutes": nil, "offset_months": nil, "offset_seconds": nil, "offset_years": nil, "triggers": tags},
		},
		"time_static": {
			weight: 1, refs: []string{"id", "year", "unix"}, always: []string{"rfc3339"},
			words: map[string]words{"rfc3339": then, "triggers": tags},
		},
	}
}
