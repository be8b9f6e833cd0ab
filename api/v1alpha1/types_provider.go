package v1alpha1

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Provider makes the server install a Terraform provider plugin and serve a kind for each of its types. The group of
// the kinds is "<name>.hykube.io".
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Provider struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name becomes the first label of the API group of the provider's kinds.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Provider package to install.
	Spec ProviderSpec `json:"spec"`
	// Installed package and its conditions.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// ProviderSpec defines the package to install.
type ProviderSpec struct {
	// Address of the provider: "[HOST/]NAMESPACE/TYPE", as in Terraform's required_providers. HOST defaults to
	// registry.terraform.io.
	Source string `json:"source"`
	// Version constraint in Terraform's syntax, such as "~> 6.0" or ">= 1.2, < 2.0". The server installs the newest
	// version that matches and supports its platform. Empty matches any release.
	// +optional
	Version string `json:"version,omitempty"`
	// Checksums of the package that the server accepts, in the formats "h1:" and "zh:" of Terraform's dependency lock
	// file. The server runs only a package that has one of them. Empty accepts every checksum that the mirror or the
	// registry names.
	// +optional
	// +listType=set
	Checksums []string `json:"checksums,omitempty"`
	// OpenPGP keys of the publisher: ASCII-armored public keys, or fingerprints (40 or 64 hexadecimal digits) of keys
	// that the registry names. One of them must have signed the list of checksums that has the package. Empty accepts
	// all keys that the registry names, and packages of mirrors without a signature.
	// +optional
	// +listType=set
	SigningKeys []string `json:"signingKeys,omitempty"`
	// Files, programs and ports that the provider's processes may access on the server's machine. They always have
	// access to their own package, a private directory and the network. The condition Sandboxed names the restrictions.
	// +optional
	Sandbox *ProviderSandbox `json:"sandbox,omitempty"`
	// Names of environment variables of the server that the provider's processes get, such as "AWS_PROFILE". They
	// always get PATH, the language, the time zone, and the variables for proxies and certificate authorities.
	// +optional
	// +listType=set
	Environment []string `json:"environment,omitempty"`
}

// SandboxMode determines if the processes of a provider run in a sandbox.
type SandboxMode string

const (
	// SandboxEnforced runs the processes with all restrictions that the server's machine supports.
	SandboxEnforced SandboxMode = "Enforced"
	// SandboxOff runs the processes with the user and the files of the server.
	SandboxOff SandboxMode = "Off"
)

// UnmarshalJSON decodes a mode. It explains the value false, which YAML makes of an unquoted Off.
func (m *SandboxMode) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return errors.New(`the mode of a sandbox is a string, and YAML reads an unquoted Off as false: write mode: "Off"`)
	}
	return json.Unmarshal(data, (*string)(m))
}

// ProviderSandbox grants access to files, programs and ports outside of the provider's sandbox. The permissions of a
// file must also allow the access: a server that runs as root runs each provider as a user of its own.
type ProviderSandbox struct {
	// Enforced (the default) or Off. With Off, the provider can read everything that the server can read, including its
	// keys.
	// +optional
	Mode SandboxMode `json:"mode,omitempty"`
	// Absolute paths of files and directories that the provider may read. A directory includes everything below it.
	// +optional
	// +listType=set
	ReadPaths []string `json:"readPaths,omitempty"`
	// Absolute paths of files and directories that the provider may read, change, create and remove. A directory
	// includes everything below it. If the path does not exist, the server creates a directory for the provider.
	// +optional
	// +listType=set
	WritePaths []string `json:"writePaths,omitempty"`
	// Absolute paths of programs that the provider may execute, or of directories with programs. The programs run in
	// the same sandbox.
	// +optional
	// +listType=set
	ExecutePaths []string `json:"executePaths,omitempty"`
	// TCP ports to which the provider may connect. Empty allows all ports. UDP is not restricted.
	// +optional
	// +listType=set
	ConnectPorts []int32 `json:"connectPorts,omitempty"`
}

// ProviderStatus describes the installed package.
type ProviderStatus struct {
	// Generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Installed version, such as "0.14.2".
	// +optional
	Version string `json:"version,omitempty"`
	// Checksum of the installed plugin's files, in the "h1:" format of Terraform's dependency lock file. The server
	// refuses a plugin with another checksum.
	// +optional
	Checksum string `json:"checksum,omitempty"`
	// Checksum of the zip file of the package, in the "zh:" format of Terraform's dependency lock file. Empty for an
	// unpacked package.
	// +optional
	ArchiveChecksum string `json:"archiveChecksum,omitempty"`
	// Protocol version of the plugin, "5" or "6".
	// +optional
	Protocol string `json:"protocol,omitempty"`
	// Number of kinds that the provider serves.
	// +optional
	Kinds int32 `json:"kinds,omitempty"`
	// Installed, Verified, Signed, Sandboxed, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderList is a list of Providers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}

// ProviderConfig is one configuration of a provider: region, endpoints, credentials. Resources in its namespace use the
// one with the name "default" unless their lifecycle.providerConfig names another.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Configuration of the provider.
	Spec ProviderConfigSpec `json:"spec"`
	// Result of the validation by the provider.
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigSpec is the configuration of a provider.
type ProviderConfigSpec struct {
	// Name of the Provider object. Immutable.
	Provider string `json:"provider"`
	// Arguments of the provider, under its own names, checked against its schema. Strings are templates, as in the spec
	// of a resource: they may refer to resources, data sources, ConfigMaps, Secrets and ephemeral resources. Plans
	// create those before the resources that use this configuration. Each provider has its own arguments: "kubectl
	// hykube provider schema PROVIDER --config" lists them.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Arguments with values from Secrets in the same namespace. The server reads the Secrets each time it configures
	// the provider and never stores the values in a plan.
	// +optional
	// +listType=map
	// +listMapKey=argument
	SecretRefs []SecretArgument `json:"secretRefs,omitempty"`
	// Content of Terraform's provider_meta block: arguments that the provider receives with every call about a
	// resource. Few providers accept any.
	// +optional
	Meta *runtime.RawExtension `json:"meta,omitempty"`
	// Limits on concurrent calls and on calls per second.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// SecretArgument sets one argument of the provider from a key of a Secret.
type SecretArgument struct {
	// Argument of the provider's configuration. Dots separate the parts of a nested one, as in "auth.password".
	Argument string `json:"argument"`
	// Name of the Secret.
	Name string `json:"name"`
	// Key in the Secret's data.
	Key string `json:"key"`
	// True for a credential that is replaced now and then, such as a token. A new value leaves approved plans valid: a
	// step goes on if the provider reads the approved state with it. A create goes on without such a proof. So an
	// argument that chooses an account, such as an endpoint, must not rotate. False: each plan is stale after a new
	// value.
	// +optional
	Rotates bool `json:"rotates,omitempty"`
}

// Limits limits the load of one configuration on the provider's API.
type Limits struct {
	// Maximum number of concurrent calls. 0 means 16, and 256 more for types whose calls the provider takes in batches.
	// The maximum is 1024.
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// Maximum number of calls per second, averaged over a second. 0 means no limit.
	// +optional
	RatePerSecond int32 `json:"ratePerSecond,omitempty"`
}

// ProviderConfigStatus is the result of the validation by the provider.
type ProviderConfigStatus struct {
	// Users who wrote the arguments last, each with the arguments that the user wrote. Set by the server.
	// +optional
	// +listType=atomic
	Contributors []Contributor `json:"contributors,omitempty"`
	// Generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}
