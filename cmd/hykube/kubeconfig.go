package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/access"
)

// certificateLife and the life of the administrator's certificate are short, because a certificate cannot be revoked
// before it expires.
const certificateLife = "90d"

type kubeconfigOptions struct {
	dataDir string
	expires string
	output  string
	// temporal is true if the command writes a profile for Temporal's clients, too.
	temporal bool
	user     access.User
}

func newKubeconfigCommand() *cobra.Command {
	o := &kubeconfigOptions{dataDir: server.DefaultDataDir(), expires: certificateLife,
		user: access.User{Namespace: "default"}}
	cmd := &cobra.Command{
		Use:   "kubeconfig [--user NAME]",
		Short: "Create a kubeconfig for a user, or renew that of the administrator",
		Long: `Create a kubeconfig with a client certificate for a user, or renew that of the administrator.

Run the command on the server's machine, because it signs with the certificate authority in the data directory. The server
need not run. The user has no rights until you bind a role to the name or to one of the groups. A certificate cannot be
revoked: to end access earlier, remove the bindings of its name and groups.

With --temporal, the command also writes USER.temporal.toml: a profile for workers and clients of workflows in the namespace.
Temporal's CLI and SDKs read it from the file that TEMPORAL_CONFIG_FILE names. The user needs the role edit, or the verbs of
workflows.hykube.io.

Without --user, the command renews the certificate in admin.kubeconfig of the data directory. It is valid for 7 days, and a
running server renews it in the file. A copy of the file, and the file of a server that was off, expire; kubectl then says
"You must be logged in to the server". Renew the file with this command, and copy it again.`,
		Example: `  # admin.kubeconfig, for 7 days
  sudo hykube kubeconfig --data-dir /var/lib/hykube

  # alice.kubeconfig, for 90 days
  hykube kubeconfig --user alice --group platform --data-dir /var/lib/hykube --server https://hykube.example.com:6443

  # ci.kubeconfig and ci.temporal.toml, for a worker of workflows in the namespace prod
  hykube kubeconfig --user ci --temporal -n prod --data-dir /var/lib/hykube

  # grant rights to alice's group
  kubectl create rolebinding platform --clusterrole=edit --group=platform -n prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("user") {
				return o.renewAdmin(cmd, time.Now())
			}
			return o.run(cmd, time.Now())
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.user.Name, "user", "", "Name of the user; without it, the command renews admin.kubeconfig.")
	fs.StringArrayVar(&o.user.Groups, "group", nil, "Group of the user; repeatable.")
	fs.StringVar(&o.user.ServerURL, "server", "",
		"Address of the server for the user; the default is that of admin.kubeconfig.")
	fs.StringVarP(&o.user.Namespace, "namespace", "n", o.user.Namespace, "Default namespace of the kubeconfig.")
	fs.StringVarP(&o.dataDir, "data-dir", "d", o.dataDir, "Data directory of the server.")
	fs.StringVar(&o.expires, "expires", o.expires, "Lifetime of the certificate, such as 12h or 90d.")
	fs.StringVarP(&o.output, "output", "o", "",
		"File to write, which must not exist, or - for standard output; the default is USER.kubeconfig.")
	fs.BoolVar(&o.temporal, "temporal", false,
		"Also write a profile for Temporal's clients, to the file of --output with the ending .temporal.toml.")
	return cmd
}

// fileName matches user names that are valid file names.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)

func (o *kubeconfigOptions) run(cmd *cobra.Command, now time.Time) error {
	life, err := lifetime(o.expires)
	if err != nil {
		return err
	}
	o.user.Expires = now.Add(life)
	if err := o.user.Validate(now); err != nil {
		return fmt.Errorf("make kubeconfig: %w", err)
	}
	if err := o.checkServer(); err != nil {
		return err
	}
	if o.output == "" {
		if !fileName.MatchString(o.user.Name) {
			return fmt.Errorf("user %q is not usable as a file name: name a file with --output", o.user.Name)
		}
		o.output = o.user.Name + ".kubeconfig"
	}
	data, err := access.UserKubeconfig(o.dataDir, o.user, now)
	if err != nil {
		return fmt.Errorf("make kubeconfig: %w", err)
	}
	if host := access.UncertifiedHost(o.dataDir, o.user.ServerURL); host != "" {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"Warning: the server's certificate does not have the name %s, so clients refuse the server at that address. Start the server with --tls-san %s.\n", host, host)
	}
	if o.temporal && o.output == "-" {
		return errors.New("--temporal writes two files: name the kubeconfig with --output FILE")
	}
	if o.output == "-" {
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
	if err := createFile(o.output, data); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s written: user %s%s, until %s\n", o.output, o.user.Name, inGroups(o.user.Groups),
		day(o.user.Expires))
	if !o.temporal {
		return nil
	}
	return o.writeProfile(cmd, data)
}

// writeProfile writes the profile for Temporal's clients beside a kubeconfig.
func (o *kubeconfigOptions) writeProfile(cmd *cobra.Command, kubeconfig []byte) error {
	profile, err := access.TemporalProfile(kubeconfig)
	if err != nil {
		return fmt.Errorf("make Temporal profile: %w", err)
	}
	path := strings.TrimSuffix(o.output, ".kubeconfig") + ".temporal.toml"
	if err := createFile(path, profile); err != nil {
		return fmt.Errorf("write Temporal profile: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s written: Temporal namespace %s\n", path,
		v1alpha1.TemporalNamespace(o.user.Namespace))
	return nil
}

// renewAdmin renews the certificate in admin.kubeconfig.
func (o *kubeconfigOptions) renewAdmin(cmd *cobra.Command, now time.Time) error {
	for _, flag := range []string{"group", "namespace", "output", "expires", "temporal"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s needs --user", flag)
		}
	}
	if err := o.checkServer(); err != nil {
		return err
	}
	admin := access.Admin{Path: access.AdminPath(o.dataDir), ServerURL: o.user.ServerURL,
		Lifetime: access.AdminLifetime}
	if err := access.RenewAdmin(o.dataDir, admin, now); err != nil {
		return fmt.Errorf("renew admin.kubeconfig: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s renewed: the administrator, until %s\n", admin.Path,
		day(now.Add(admin.Lifetime)))
	return nil
}

func (o *kubeconfigOptions) checkServer() error {
	if u, err := url.Parse(o.user.ServerURL); o.user.ServerURL != "" &&
		(err != nil || u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("--server %q: write https://HOST:PORT", o.user.ServerURL)
	}
	return nil
}

func inGroups(groups []string) string {
	switch len(groups) {
	case 0:
		return ""
	case 1:
		return " in group " + groups[0]
	}
	return " in groups " + strings.Join(groups, ", ")
}

// createFile writes a new file that only its owner can read. It fails if the file exists, because overwriting would
// lose a key.
func createFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q exists already; remove it, or choose another file with --output", path)
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// lifetime parses a duration in Go's format or in whole days.
func lifetime(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 36_500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("--expires %q: write a duration such as 12h or 90d", s)
}
