// Package tfstate reads and writes the state files of Terraform and OpenTofu, format version 4:
// https://github.com/hashicorp/terraform/blob/main/internal/states/statefile/version4.go. It knows no server and no
// provider: attributes stay JSON. It imports only the standard library.
package tfstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// MaxBytes is the maximum size of a state file.
const MaxBytes = 256 << 20

// Version is the version of the format.
const Version = 4

// File is a state file.
type File struct {
	Version          int    `json:"version"`
	TerraformVersion string `json:"terraform_version"`
	// Serial increases with each write of the state.
	Serial uint64 `json:"serial"`
	// Lineage identifies the state, through all of its serials.
	Lineage string `json:"lineage"`
	// Outputs are the outputs of the root module.
	Outputs   map[string]Output `json:"outputs"`
	Resources []Resource        `json:"resources"`
	// CheckResults are the results of checks; null in a pulled state.
	CheckResults json.RawMessage `json:"check_results"`
}

// Output is an output of the root module.
type Output struct {
	Value json.RawMessage `json:"value"`
	// Type is the type of the value, such as `"string"`.
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// Modes of a Resource.
const (
	ModeManaged = "managed"
	ModeData    = "data"
)

// Resource is a resource block with its instances.
type Resource struct {
	// Module is the address of the module instance, such as `module.a["x"]`; empty for the root module.
	Module string `json:"module,omitempty"`
	Mode   string `json:"mode"`
	Type   string `json:"type"`
	Name   string `json:"name"`
	// Provider is the address of the provider configuration, such as
	// `provider["registry.terraform.io/hashicorp/random"].west`.
	Provider  string     `json:"provider"`
	Instances []Instance `json:"instances"`
}

// Address returns the address without the key of an instance.
func (r *Resource) Address() string {
	a := r.Type + "." + r.Name
	if r.Mode == ModeData {
		a = "data." + a
	}
	if r.Module != "" {
		a = r.Module + "." + a
	}
	return a
}

// Tainted is the status of an instance that the next plan replaces.
const Tainted = "tainted"

// Instance is one object of an instance: the current one, or a deposed one.
type Instance struct {
	// IndexKey is the key of count or for_each as JSON: a number or a string. It is nil without both.
	IndexKey json.RawMessage `json:"index_key,omitempty"`
	// Status is Tainted or empty.
	Status string `json:"status,omitempty"`
	// Deposed is the key of a deposed object; empty for the current one.
	Deposed       string          `json:"deposed,omitempty"`
	SchemaVersion int64           `json:"schema_version"`
	Attributes    json.RawMessage `json:"attributes,omitempty"`
	// AttributesFlat are the attributes as Terraform 0.11 wrote them.
	AttributesFlat map[string]string `json:"attributes_flat,omitempty"`
	// SensitiveAttributes are the paths of sensitive values; each is a list of steps.
	SensitiveAttributes   []json.RawMessage `json:"sensitive_attributes,omitempty"`
	IdentitySchemaVersion int64             `json:"identity_schema_version,omitempty"`
	Identity              json.RawMessage   `json:"identity,omitempty"`
	Private               []byte            `json:"private,omitempty"`
	// Dependencies are addresses without the keys of instances.
	Dependencies        []string `json:"dependencies,omitempty"`
	CreateBeforeDestroy bool     `json:"create_before_destroy,omitempty"`
}

// Key returns the key as in an address: `[0]`, `["a"]`, or nothing.
func (i *Instance) Key() (string, error) {
	if absent(i.IndexKey) {
		return "", nil
	}
	var index int
	if json.Unmarshal(i.IndexKey, &index) == nil && index >= 0 {
		return "[" + strconv.Itoa(index) + "]", nil
	}
	var name string
	if json.Unmarshal(i.IndexKey, &name) == nil {
		return "[" + strconv.Quote(name) + "]", nil
	}
	return "", fmt.Errorf("the key %.40s is neither a number nor a string", i.IndexKey)
}

// absent reports whether a JSON value is missing or null.
func absent(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// Exists reports whether the instance has attributes.
func (i *Instance) Exists() bool { return !absent(i.Attributes) || i.AttributesFlat != nil }

// Parse reads a state file. The error says what else the file is, if it is no state of this version, and what to do.
func Parse(r io.Reader) (*File, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("the state has more than %d MiB: push a part of it at a time, with --target",
			MaxBytes>>20)
	}
	if err := recognize(raw); err != nil {
		return nil, err
	}
	f := &File{}
	if err := json.Unmarshal(raw, f); err != nil {
		return nil, fmt.Errorf("the state is damaged: %w. Take it again with terraform state pull", err)
	}
	return f, f.check()
}

// recognize returns an error for a file that is no state of this version.
func recognize(raw []byte) error {
	text := bytes.TrimSpace(raw)
	switch {
	case len(text) == 0:
		return errors.New("the state is empty: terraform state pull prints nothing if the backend has no state, or if it failed")
	case bytes.HasPrefix(text, []byte("PK")):
		return errors.New("this is a saved plan, and not a state: run terraform state pull")
	case text[0] == '<':
		return errors.New("this is HTML, and not a state: most likely the answer of a login page. Run terraform state pull")
	case text[0] != '{':
		return errors.New("this is not a state, which is a JSON object: run terraform state pull")
	}
	var head struct {
		Version       json.RawMessage `json:"version"`
		FormatVersion json.RawMessage `json:"format_version"`
		Encrypted     json.RawMessage `json:"encrypted_data"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("the state is damaged or truncated: %w. Take it again with terraform state pull", err)
	}
	switch {
	case head.Encrypted != nil:
		return errors.New("OpenTofu has encrypted this state: tofu state pull decrypts it")
	case head.FormatVersion != nil:
		return errors.New("this is the output of terraform show -json, and not a state: run terraform state pull")
	case head.Version == nil:
		return errors.New("this JSON has no version, so it is not a state: run terraform state pull")
	}
	var version int
	if err := json.Unmarshal(head.Version, &version); err != nil {
		return fmt.Errorf("the version %.40s of the state is not a number: run terraform state pull", head.Version)
	}
	switch {
	case version < Version:
		return fmt.Errorf("the state has version %d, and version %d is needed: run terraform apply once with Terraform 0.12 or newer", version, Version)
	case version > Version:
		return fmt.Errorf("the state has version %d, which is newer than version %d", version, Version)
	}
	return nil
}

// check returns an error for a file that JSON alone does not refuse.
func (f *File) check() error {
	if f.Lineage == "" {
		return errors.New("the state has no lineage: run terraform state pull")
	}
	seen := map[string]bool{}
	for i := range f.Resources {
		r := &f.Resources[i]
		switch {
		case r.Mode != ModeManaged && r.Mode != ModeData:
			return fmt.Errorf("resource %d of the state has the mode %.40q, which is neither managed nor data", i,
				r.Mode)
		case r.Type == "" || r.Name == "":
			return fmt.Errorf("resource %d of the state has no type or no name", i)
		}
		for k := range r.Instances {
			in := &r.Instances[k]
			key, err := in.Key()
			if err != nil {
				return fmt.Errorf("%s: %w", r.Address(), err)
			}
			address := r.Address() + key
			if in.Deposed != "" {
				address += " (deposed " + in.Deposed + ")"
			}
			switch {
			case seen[address]:
				return fmt.Errorf("the state has %s twice", address)
			case in.Status != "" && in.Status != Tainted:
				return fmt.Errorf("%s has the unknown status %.40q", address, in.Status)
			case !absent(in.Attributes) && in.Attributes[0] != '{':
				return fmt.Errorf("the attributes of %s are no JSON object", address)
			}
			seen[address] = true
		}
	}
	return nil
}

// ProviderAddress is the address of a provider configuration.
type ProviderAddress struct {
	// Source is the provider's registry address, such as registry.terraform.io/hashicorp/random.
	Source string
	// Alias is empty for the configuration without an alias.
	Alias string
}

var providerAddress = regexp.MustCompile(`^(?:module\..+\.)?provider\["([^"\[\]]+)"\](?:\.([A-Za-z_][A-Za-z0-9_-]*))?$`)

// ParseProvider parses the field Provider of a resource. It drops the module in which the configuration is.
func ParseProvider(text string) (ProviderAddress, error) {
	m := providerAddress.FindStringSubmatch(text)
	if m == nil {
		return ProviderAddress{}, fmt.Errorf(
			"%.120q is not the address of a provider, such as provider[\"registry.terraform.io/hashicorp/random\"]: run terraform apply once with Terraform 0.13 or newer", text)
	}
	return ProviderAddress{m[1], m[2]}, nil
}

// String returns the form in a state file.
func (a ProviderAddress) String() string {
	s := `provider["` + a.Source + `"]`
	if a.Alias != "" {
		s += "." + a.Alias
	}
	return s
}

// WithoutKeys returns an address of a resource without the keys of its modules and of itself.
func WithoutKeys(address string) string {
	var b strings.Builder
	for i := 0; i < len(address); i++ {
		if address[i] != '[' {
			b.WriteByte(address[i])
			continue
		}
		if i = endOfKey(address, i); i < 0 {
			break
		}
	}
	return b.String()
}

// endOfKey returns the position of the bracket that closes the key at a position; -1 if none does.
func endOfKey(address string, at int) int {
	quoted := false
	for i := at + 1; i < len(address); i++ {
		switch c := address[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i
		}
	}
	return -1
}

// SplitAddress splits the address of a managed resource, or of an instance of one, into the module, the type, the name
// and the key with its brackets, which is empty without one. ok is false for another text.
func SplitAddress(address string) (module, typ, name, key string, ok bool) {
	rest := address
	if open := lastKey(rest); open > 0 {
		rest, key = rest[:open], rest[open:]
	}
	at := strings.LastIndexByte(rest, '.')
	if at <= 0 || at == len(rest)-1 || strings.ContainsAny(rest[at:], `]["`) {
		return "", "", "", "", false
	}
	rest, name = rest[:at], rest[at+1:]
	if at = strings.LastIndexByte(rest, '.'); at >= 0 {
		module, rest = rest[:at], rest[at+1:]
	}
	if rest == "" || strings.ContainsAny(rest, `]["`) || module != "" && !strings.HasPrefix(module, "module.") {
		return "", "", "", "", false
	}
	return module, rest, name, key, true
}

// lastKey returns the position of the bracket that opens the key at the end of an address; -1 if it has none.
func lastKey(address string) int {
	for i := 0; i < len(address); i++ {
		if address[i] != '[' {
			continue
		}
		end := endOfKey(address, i)
		switch {
		case end < 0:
			return -1
		case end == len(address)-1:
			return i
		}
		i = end
	}
	return -1
}
