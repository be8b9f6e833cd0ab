package simcloud

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// kind is a type of object: its fields, its dependencies and the values that the cloud sets.
type kind struct {
	name       string // "dns-record"
	collection string // "dns-records"
	prefix     string // of IDs: "dns" for "dns-0000002a"
	fields     []field
	// unique lists the fields whose values, taken together, may occur once; empty permits duplicates.
	unique []string
	// check rejects invalid combinations of fields. before is nil on create.
	check func(s *store, before, after map[string]any) *Error
	// fill sets the values that the cloud determines. seq is the object's number.
	fill func(s *store, id string, seq int64, fields map[string]any)
	// status is true if new objects are "pending" for a time.
	status bool
}

// field is one field of a kind.
type field struct {
	name string
	typ  fieldType
	// required must be set on create. immutable cannot change later. readOnly is never set by a caller. once is
	// returned only by the create.
	required, immutable, readOnly, once bool
	// ref is the kind of the object whose ID the field holds. That object cannot be deleted as long as the field refers
	// to it.
	ref string
	// release clears the field when that object is deleted, instead of preventing the deletion.
	release bool
	// hidden is returned only by the control API. The API accepts the field and never returns it.
	hidden bool
}

type fieldType string

const (
	typeString fieldType = "string"
	typeNumber fieldType = "number"
	typeBool   fieldType = "bool"
	typeList   fieldType = "list"
	typeMap    fieldType = "map"
)

func (f fieldType) holds(v any) bool {
	switch v.(type) {
	case string:
		return f == typeString
	case float64:
		return f == typeNumber
	case bool:
		return f == typeBool
	case []any:
		return f == typeList
	case map[string]any:
		return f == typeMap
	}
	return false
}

func (k *kind) field(name string) *field {
	for i := range k.fields {
		if k.fields[i].name == name {
			return &k.fields[i]
		}
	}
	return nil
}

// Image is an image that an instance can be made from.
type Image struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Family string `json:"family"`
	// MinDiskGB is the minimum size of a disk for the image.
	MinDiskGB int `json:"min_disk_gb"`
}

// Images holds the images of the cloud, by name.
func Images() []Image {
	return []Image{
		{ID: "img-alpine-3.22", Name: "alpine-3.22", Family: "alpine", MinDiskGB: 1},
		{ID: "img-debian-12", Name: "debian-12", Family: "debian", MinDiskGB: 4},
		{ID: "img-debian-13", Name: "debian-13", Family: "debian", MinDiskGB: 4},
		{ID: "img-ubuntu-24.04", Name: "ubuntu-24.04", Family: "ubuntu", MinDiskGB: 8},
	}
}

// KindNames returns the names of all kinds, sorted.
func KindNames() []string {
	var names []string
	for i := range kinds() {
		names = append(names, kinds()[i].name)
	}
	slices.Sort(names)
	return names
}

// kindNamed returns a kind by any of its spellings: "dns-record", "dns_record", "sim-dns-record", "sim_dns_record" or
// the collection; nil if there is none.
func kindNamed(name string) *kind {
	name = strings.TrimPrefix(strings.ReplaceAll(name, "_", "-"), "sim-")
	for i, k := range kinds() {
		if k.name == name || k.collection == name {
			return &kinds()[i]
		}
	}
	return nil
}

// canonical returns the name of a kind for any of its spellings. It returns an unknown name unchanged.
func canonical(name string) string {
	if k := kindNamed(name); k != nil {
		return k.name
	}
	return name
}

// kinds is the table of kinds. It never changes.
func kinds() []kind { return allKinds }

var allKinds = []kind{
	{
		name: "network", collection: "networks", prefix: "net",
		fields: []field{
			{name: "name", typ: typeString, required: true},
			{name: "cidr", typ: typeString, immutable: true},
			{name: "tags", typ: typeMap},
		},
		check: func(_ *store, _, after map[string]any) *Error { return checkCIDR(after, "cidr") },
		fill: func(_ *store, _ string, _ int64, f map[string]any) {
			setDefault(f, "cidr", "10.0.0.0/16")
		},
	},
	{
		name: "subnet", collection: "subnets", prefix: "sub",
		fields: []field{
			{name: "name", typ: typeString, required: true},
			{name: "network_id", typ: typeString, required: true, immutable: true, ref: "network"},
			{name: "cidr", typ: typeString, required: true, immutable: true},
			{name: "zone", typ: typeString, immutable: true},
			{name: "tags", typ: typeMap},
		},
		check: checkSubnet,
		fill: func(_ *store, _ string, seq int64, f map[string]any) {
			setDefault(f, "zone", fmt.Sprintf("zone-%c", 'a'+rune(seq%3)))
		},
	},
	{
		name: "instance", collection: "instances", prefix: "ins", status: true,
		fields: []field{
			{name: "name", typ: typeString, required: true},
			{name: "subnet_id", typ: typeString, required: true, immutable: true, ref: "subnet"},
			{name: "image", typ: typeString, required: true, immutable: true},
			{name: "size", typ: typeString},
			{name: "cpu", typ: typeNumber},
			{name: "public", typ: typeBool},
			{name: "network_interfaces", typ: typeList},
			{name: "metadata", typ: typeMap},
			{name: "tags", typ: typeMap},
			{name: "private_ip", typ: typeString, readOnly: true},
			{name: "public_ip", typ: typeString, readOnly: true},
			{name: "status", typ: typeString, readOnly: true},
		},
		check: checkInstance,
		fill:  fillInstance,
	},
	{
		name: "disk", collection: "disks", prefix: "dsk",
		fields: []field{
			{name: "name", typ: typeString, required: true},
			{name: "size_gb", typ: typeNumber, required: true},
			{name: "type", typ: typeString, immutable: true},
			{name: "encrypted", typ: typeBool, immutable: true},
			{name: "tags", typ: typeMap},
			// Only attach and detach set it. As in most clouds, a deleted instance detaches its disks. Otherwise
			// Terraform, which updates the disk after the replace of its instance, could never replace an instance.
			{name: "instance_id", typ: typeString, readOnly: true, ref: "instance", release: true},
		},
		check: func(_ *store, before, after map[string]any) *Error {
			size, _ := after["size_gb"].(float64)
			if size < 1 || size != float64(int64(size)) {
				return invalid("size_gb", "a disk has a whole number of GB, and at least one")
			}
			if was, ok := before["size_gb"].(float64); ok && size < was {
				return invalid("size_gb", fmt.Sprintf("a disk can't shrink, and it has %v GB", was))
			}
			return nil
		},
		fill: func(_ *store, _ string, _ int64, f map[string]any) {
			setDefault(f, "type", "ssd")
			setDefault(f, "encrypted", false)
		},
	},
	{
		name: "dns-record", collection: "dns-records", prefix: "dns", unique: []string{"name", "type"},
		fields: []field{
			{name: "name", typ: typeString, required: true, immutable: true},
			{name: "type", typ: typeString, required: true, immutable: true},
			{name: "ttl", typ: typeNumber},
			{name: "values", typ: typeList, required: true},
			{name: "fqdn", typ: typeString, readOnly: true},
		},
		check: func(_ *store, _, after map[string]any) *Error {
			if vs, _ := after["values"].([]any); len(vs) == 0 {
				return invalid("values", "a record has at least one value")
			}
			return nil
		},
		fill: func(_ *store, _ string, _ int64, f map[string]any) {
			setDefault(f, "ttl", 300.0)
			setDefault(f, "fqdn", fmt.Sprintf("%v.sim.example.", f["name"]))
		},
	},
	{
		name: "bucket", collection: "buckets", prefix: "bkt", unique: []string{"name"},
		fields: []field{
			{name: "name", typ: typeString, required: true, immutable: true},
			{name: "versioning", typ: typeBool},
			{name: "rules", typ: typeList},
			{name: "tags", typ: typeMap},
			{name: "endpoint", typ: typeString, readOnly: true},
		},
		fill: func(_ *store, _ string, _ int64, f map[string]any) {
			setDefault(f, "versioning", false)
			setDefault(f, "endpoint", fmt.Sprintf("https://%v.storage.sim.example", f["name"]))
		},
	},
	{
		name: "token", collection: "tokens", prefix: "tok",
		fields: []field{
			{name: "name", typ: typeString, required: true, immutable: true},
			{name: "scopes", typ: typeList},
			{name: "secret", typ: typeString, readOnly: true, once: true},
			{name: "renewal", typ: typeString, readOnly: true},
		},
		fill: func(s *store, id string, _ int64, f map[string]any) {
			setDefault(f, "secret", "simsecret-"+s.secret(id)+"-"+id)
			setDefault(f, "renewal", "simrenewal-"+s.secret("renewal of "+id)+"-"+id)
		},
	},
	{
		name: "database", collection: "databases", prefix: "dba", status: true,
		fields: []field{
			{name: "name", typ: typeString, required: true},
			{name: "engine", typ: typeString, required: true, immutable: true},
			{name: "engine_version", typ: typeString, required: true},
			{name: "storage_gb", typ: typeNumber},
			{name: "admin_password", typ: typeString, hidden: true},
			{name: "tags", typ: typeMap},
			{name: "address", typ: typeString, readOnly: true},
			{name: "status", typ: typeString, readOnly: true},
		},
		check: checkDatabase,
		fill: func(_ *store, id string, _ int64, f map[string]any) {
			setDefault(f, "storage_gb", 10.0)
			setDefault(f, "address", id+".db.sim.example:5432")
			setDefault(f, "status", "running")
		},
	},
	{
		// A session is a short-lived credential. It stays after its end, so that tests can find sessions that were
		// never closed.
		name: "session", collection: "sessions", prefix: "ses",
		fields: []field{
			{name: "name", typ: typeString, required: true, immutable: true},
			{name: "scopes", typ: typeList, immutable: true},
			{name: "ttl", typ: typeString, immutable: true},
			{name: "value", typ: typeString, readOnly: true, once: true},
			{name: "expires_at", typ: typeString, readOnly: true},
		},
		check: func(_ *store, _, after map[string]any) *Error {
			if v, ok := after["ttl"].(string); ok {
				if d, err := time.ParseDuration(v); err != nil || d <= 0 {
					return invalid("ttl", fmt.Sprintf("%q is no duration such as 10m", v))
				}
			}
			return nil
		},
		fill: func(s *store, id string, _ int64, f map[string]any) {
			setDefault(f, "ttl", "10m")
			setDefault(f, "value", "simsession-"+s.secret(id)+"-"+id)
			setDefault(f, "expires_at", sessionEnd(f))
		},
	},
}

func setDefault(f map[string]any, name string, v any) {
	if f[name] == nil {
		f[name] = v
	}
}

func checkCIDR(f map[string]any, name string) *Error {
	s, ok := f[name].(string)
	if !ok {
		return nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return invalid(name, fmt.Sprintf("%q is no CIDR block such as 10.0.0.0/16", s))
	}
	if p != p.Masked() {
		return invalid(name, fmt.Sprintf("%q has host bits set; the block is %s", s, p.Masked()))
	}
	return nil
}

func checkSubnet(s *store, before, after map[string]any) *Error {
	if err := checkCIDR(after, "cidr"); err != nil {
		return err
	}
	if before != nil {
		return nil
	}
	net := s.fieldsOf("network", after["network_id"])
	outer, err := netip.ParsePrefix(text(net["cidr"]))
	if err != nil {
		return nil // the network has an invalid range because of drift, which is not an error of this call
	}
	inner := netip.MustParsePrefix(text(after["cidr"]))
	if !outer.Contains(inner.Addr()) || inner.Bits() < outer.Bits() {
		return invalid("cidr", fmt.Sprintf("%s lies outside the network's %s", inner, outer))
	}
	return nil
}

func checkInstance(_ *store, before, after map[string]any) *Error {
	if before == nil && !slices.ContainsFunc(Images(), func(i Image) bool { return i.Name == after["image"] }) {
		return invalid("image", fmt.Sprintf("there is no image %q; GET /v1/images lists them", after["image"]))
	}
	if cpu, ok := after["cpu"].(float64); ok && (cpu < 1 || cpu > 128) {
		return invalid("cpu", "an instance has 1 to 128 CPUs")
	}
	if public, _ := after["public"].(bool); !public {
		delete(after, "public_ip")
	}
	return nil
}

func checkDatabase(_ *store, before, after map[string]any) *Error {
	engine, version := text(after["engine"]), text(after["engine_version"])
	versions := map[string][]string{"postgres": {"16", "17", "18"}, "mysql": {"8.0", "8.4"}}[engine]
	if versions == nil {
		return invalid("engine", fmt.Sprintf("there is no engine %q; there are postgres and mysql", engine))
	}
	if !slices.Contains(versions, version) {
		return invalid("engine_version", fmt.Sprintf("%s has no version %q; there are %s", engine, version, strings.Join(versions, ", ")))
	}
	size, ok := after["storage_gb"].(float64)
	if was, had := before["storage_gb"].(float64); ok && had && size < was {
		return invalid("storage_gb", fmt.Sprintf("a database can't shrink, and it has %v GB", was))
	}
	if ok && (size < 1 || size != float64(int64(size))) {
		return invalid("storage_gb", "a database has a whole number of GB, and at least one")
	}
	return nil
}

// sessionEnd returns the end of a session that is opened or renewed now.
func sessionEnd(f map[string]any) string {
	ttl, _ := time.ParseDuration(text(f["ttl"])) // the create checked it
	return time.Now().Add(ttl).UTC().Format(time.RFC3339Nano)
}

func fillInstance(s *store, _ string, seq int64, f map[string]any) {
	setDefault(f, "size", "small")
	setDefault(f, "cpu", 1.0)
	setDefault(f, "public", false)
	setDefault(f, "status", "running")
	subnet, err := netip.ParsePrefix(text(s.fieldsOf("subnet", f["subnet_id"])["cidr"]))
	if err != nil {
		subnet = netip.MustParsePrefix("10.0.0.0/16")
	}
	setDefault(f, "private_ip", hostAddress(subnet, seq).String())
	if f["public"] == true {
		setDefault(f, "public_ip", hostAddress(netip.MustParsePrefix("198.18.0.0/15"), seq).String())
	}
	nics, _ := f["network_interfaces"].([]any)
	for i, n := range nics {
		if nic, ok := n.(map[string]any); ok {
			setDefault(nic, "address", hostAddress(subnet, seq+int64(i)+1).String())
		}
	}
}

// hostAddress returns the n-th usable address of a block. After the last address, it continues with the first.
func hostAddress(p netip.Prefix, n int64) netip.Addr {
	bits := min(p.Addr().BitLen()-p.Bits(), 30)
	size := int64(1) << bits
	if size > 8 {
		n = 4 + n%(size-5)
	} else {
		n %= size
	}
	b := p.Masked().Addr().AsSlice()
	for i := len(b) - 1; n > 0 && i >= 0; i-- {
		n += int64(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
