package docker

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const (
	folder    = "../../docker"
	compose   = folder + "/compose.yaml"
	example   = folder + "/example.env"
	tables    = "../../docs/configuration.md"
	ours      = "kivuko:"
	imageUser = "65532:65532"
	prefix    = "KIVUKO_"
	fromFile  = "_FILE"
)

// loadCompose reads a compose file with the example's settings and all profiles. The library checks it against the
// specification's schema and for broken references.
func loadCompose(t *testing.T, content []byte) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(dir), cli.WithEnvFiles(filepath.Join(dir, "example.env")),
		cli.WithDotEnv, cli.WithDefaultProfiles("*"))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func deployment(t *testing.T) *types.Project {
	t.Helper()
	p, err := loadCompose(t, read(t, compose))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// faults lists what breaks our own rules in a compose file.
func faults(p *types.Project) []string {
	var out []string
	networks := map[string][]string{}
	for name, s := range p.Services {
		out = append(out, isolation(s)...)
		out = append(out, means(s)...)
		out = append(out, secrecy(s)...)
		for n := range s.Networks {
			networks[n] = append(networks[n], name)
		}
	}
	if len(p.Services["temporal-ui"].Ports) > 0 {
		out = append(out, "the Web UI is reached without the login")
	}
	for _, name := range endsFlows {
		if v := p.Services["temporal-ui"].Environment[name]; v == nil || *v != "true" {
			out = append(out, "the Web UI lacks "+name)
		}
	}
	for _, n := range []string{"books", "flows", "histories", "ui"} {
		if !p.Networks[n].Internal {
			out = append(out, "the network "+n+" has a way out")
		}
	}
	for _, name := range []string{"books", "histories", "migrate", "temporal"} {
		for n := range p.Services[name].Networks {
			if !p.Networks[n].Internal {
				out = append(out, name+" is on "+n+", which has a way out")
			}
		}
	}
	for _, name := range networks["signers"] {
		if !strings.HasPrefix(name, "signer-") {
			out = append(out, name+" is on the signers' network")
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(networks["histories"])), []string{"histories", "temporal", "temporal-schema"}) {
		out = append(out, "somebody but Temporal reaches its database")
	}
	return out
}

// isolation lists faults in the isolation of a container from its machine.
func isolation(s types.ServiceConfig) []string {
	var out []string
	fault := func(ok bool, text string) {
		if !ok {
			out = append(out, s.Name+" "+text)
		}
	}
	fault(s.ReadOnly, "may write to its image")
	fault(slices.Equal(s.CapDrop, []string{"ALL"}) && len(s.CapAdd) == 0, "keeps capabilities")
	fault(slices.Contains(s.SecurityOpt, "no-new-privileges:true"), "may gain privileges")
	fault(!s.Privileged && s.NetworkMode == "" && s.Pid == "" && s.Ipc == "", "shares something of the machine")
	fault(regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(s.User), "does not run as the number of somebody")
	for _, port := range s.Ports {
		fault(port.HostIP == "127.0.0.1", "publishes a port beyond this machine")
	}
	fault(s.Ports == nil || !strings.HasPrefix(s.Name, "signer-"), "publishes a port")
	fault(s.Networks["default"] == nil && len(s.Networks) > 0, "is on the common network")
	if strings.HasPrefix(s.Image, ours) {
		fault(s.User == imageUser, "does not run as the image's user")
	} else {
		fault(pinned(s.Image), "has an image that is not pinned: "+s.Image)
	}
	return out
}

// means lists faults in the resource limits and the health check of a container.
func means(s types.ServiceConfig) []string {
	var out []string
	fault := func(ok bool, text string) {
		if !ok {
			out = append(out, s.Name+" "+text)
		}
	}
	limits := s.Deploy != nil && s.Deploy.Resources.Limits != nil
	fault(limits && s.Deploy.Resources.Limits.MemoryBytes > 0 && s.Deploy.Resources.Limits.NanoCPUs > 0, "has no limit of memory and processors")
	fault(limits && s.Deploy.Resources.Limits.Pids > 0, "has no limit of processes")
	fault(s.Logging != nil && s.Logging.Options["max-size"] != "" && s.Logging.Options["max-file"] != "", "may log without end")
	serves := s.Restart != "no"
	asked := s.HealthCheck != nil && !s.HealthCheck.Disable && len(s.HealthCheck.Test) > 0
	fault(!serves || asked || s.Name == "temporal-ui", "is not asked whether it works")
	for dependency, d := range s.DependsOn {
		fault(d.Condition != types.ServiceConditionStarted, "does not wait until "+dependency+" works")
	}
	return out
}

// endsFlows are the settings that take from the Web UI what ends, pauses, rewinds, starts or updates flows. Operators send signals.
var endsFlows = []string{
	"TEMPORAL_WORKFLOW_CANCEL_DISABLED", "TEMPORAL_WORKFLOW_PAUSE_DISABLED", "TEMPORAL_WORKFLOW_RESET_DISABLED",
	"TEMPORAL_WORKFLOW_TERMINATE_DISABLED", "TEMPORAL_WORKFLOW_UPDATE_DISABLED", "TEMPORAL_ACTIVITY_COMMANDS_DISABLED",
	"TEMPORAL_BATCH_ACTIONS_DISABLED", "TEMPORAL_START_WORKFLOW_DISABLED",
}

// secretsOf names the only services that may hold a secret that no variable of ours reads, or that several variables
// could hold.
var secretsOf = map[string]*regexp.Regexp{
	"database_url_migrate":   regexp.MustCompile(`^migrate$`),
	"database_url_api":       regexp.MustCompile(`^api$`),
	"database_url_codec":     regexp.MustCompile(`^codec$`),
	"database_url_flows":     regexp.MustCompile(`^worker-flows$`),
	"database_url_momo":      regexp.MustCompile(`^worker-momo$`),
	"database_url_webhooks":  regexp.MustCompile(`^worker-webhooks$`),
	"database_url_chain":     regexp.MustCompile(`^worker-(tron|ethereum|solana)$`),
	"database_url_signer":    regexp.MustCompile(`^signer-`),
	"books_migrate_password": regexp.MustCompile(`^books$`),
	"histories_password":     regexp.MustCompile(`^(histories|temporal|temporal-schema)$`),
	"payload_keys":           regexp.MustCompile(`^(codec|worker-flows)$`),
	"payload_keys_flows":     regexp.MustCompile(`^(api|apply)$`),
	"payload_keys_momo":      regexp.MustCompile(`^worker-momo$`),
	"payload_keys_chain":     regexp.MustCompile(`^worker-(tron|ethereum|solana)$`),
	"payload_keys_signer":    regexp.MustCompile(`^signer-`),
	"payload_keys_webhooks":  regexp.MustCompile(`^worker-webhooks$`),
	"files_vault_token":      regexp.MustCompile(`^api$`),
	"vault_token_tron":       regexp.MustCompile(`^signer-tron$`),
	"vault_token_ethereum":   regexp.MustCompile(`^signer-ethereum$`),
	"vault_token_solana":     regexp.MustCompile(`^signer-solana$`),
}

// certificateOf is the service that shows Temporal a certificate, by the name of its secret.
func certificateOf(secret string) (string, bool) {
	name, ok := strings.CutPrefix(secret, "client_")
	if !ok {
		return "", false
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_certificate"), "_key")
	switch name {
	case "api", "apply", "temporal":
		return name, true
	case "ui", "tools":
		return "temporal-" + name, true
	}
	if network, ok := strings.CutPrefix(name, "chain_"); ok {
		name = network
	}
	if strings.HasPrefix(name, "signer_") {
		return strings.ReplaceAll(name, "_", "-"), true
	}
	return "worker-" + name, true
}

// described is one line of the tables of variables.
type described struct {
	readers string
	secret  bool
}

// variables returns the lines of docs/configuration.md, which is generated from the configuration's struct tags.
var variables = sync.OnceValue(func() map[string]described {
	page, err := os.ReadFile(tables)
	if err != nil {
		panic(err)
	}
	out := map[string]described{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(KIVUKO_[A-Z_0-9]+)` \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		out[row[1]] = described{strings.ReplaceAll(row[3], "*", ""), strings.HasPrefix(row[5], " *Secret.*")}
	}
	return out
})

// reads reports whether one of our services reads a variable.
func reads(s types.ServiceConfig, name string) bool {
	if !strings.HasPrefix(s.Image, ours) || len(s.Command) == 0 {
		return false
	}
	process, network := s.Command[0], ""
	all := []string{"all"}
	if i := slices.Index(s.Command, "-queues"); i >= 0 {
		process, network, _ = strings.Cut(s.Command[i+1], "-")
		all = append(all, "workers")
	}
	for _, n := range []string{"tron", "ethereum", "solana"} {
		if network != "" && network != n && strings.HasPrefix(name, prefix+strings.ToUpper(n)+"_") {
			return false
		}
	}
	for _, r := range strings.Split(variables()[name].readers, ",") {
		if slices.Contains(append(all, process), strings.TrimSpace(r)) {
			return true
		}
	}
	return false
}

// secrecy lists faults in the secrets of a container.
func secrecy(s types.ServiceConfig) []string {
	var out []string
	held := map[string]bool{}
	for _, secret := range s.Secrets {
		if of, ok := certificateOf(secret.Source); ok && of != s.Name {
			out = append(out, s.Name+" shows the certificate of "+of)
		}
		if who := secretsOf[secret.Source]; who != nil && !who.MatchString(s.Name) {
			out = append(out, s.Name+" holds "+secret.Source)
		}
		target := secret.Target
		if target == "" {
			target = secret.Source
		}
		held["/run/secrets/"+filepath.Base(target)] = false
	}
	for name, value := range s.Environment {
		if value == nil {
			out = append(out, fmt.Sprintf("%s takes %s from the environment of the caller", s.Name, name))
			continue
		}
		if strings.HasPrefix(name, "KIVUKO_MASTER_KEY") && !strings.HasPrefix(s.Name, "signer-") {
			out = append(out, s.Name+" knows the master key")
		}
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, fromFile) {
			if variables()[name].secret || strings.HasSuffix(name, "_PASSWORD") {
				out = append(out, s.Name+" has "+name+" in its environment and not in a file")
			}
			continue
		}
		if variable := strings.TrimSuffix(name, fromFile); !reads(s, variable) {
			out = append(out, s.Name+" is given "+variable+", which it does not read")
		}
		if _, ok := held[*value]; !ok {
			out = append(out, fmt.Sprintf("%s looks for %s in %s, which it is not given", s.Name, name, *value))
		}
		held[*value] = true
	}
	for path, used := range held {
		if !used && strings.HasPrefix(s.Image, ours) {
			out = append(out, s.Name+" is given "+path+" and does not read it")
		}
	}
	return out
}

func TestComposeFileKeepsTheRules(t *testing.T) {
	for _, fault := range faults(deployment(t)) {
		t.Error(fault)
	}
}

// Each rule finds its faults.
func TestComposeRulesAreAwake(t *testing.T) {
	for name, c := range map[string]struct{ old, bad, want string }{
		"schema":           {"read_only: true", "readonly: true", "readonly"},
		"reference":        {"target: database_url}, admin_password, peppers]", "target: database_url}, admin_pasword, peppers]", "admin_pasword"},
		"setting":          {"{KIVUKO_SIGNER_CEILINGS:?", "{KIVUKO_SIGNER_CEILING:?", "KIVUKO_SIGNER_CEILING"},
		"writable":         {"read_only: true", "read_only: false", "may write to its image"},
		"capabilities":     {"cap_drop: [ALL]", "cap_drop: [NET_RAW]", "keeps capabilities"},
		"privileges":       {`"no-new-privileges:true"`, `"no-new-privileges:false"`, "may gain privileges"},
		"root":             {`user: "999:999"`, `user: "0:0"`, "does not run as the number of somebody"},
		"port":             {`"127.0.0.1:8080:8080"`, `"8080:8080"`, "api publishes a port beyond this machine"},
		"tag":              {"postgres:15.18", "postgres:latest", "books has an image that is not pinned"},
		"registry":         {"postgres:15.18", "registry.example/postgres:15.18", "books has an image that is not pinned"},
		"limit":            {`limits: {cpus: "2", memory: 2G, `, `limits: {cpus: "2", `, "books has no limit of memory"},
		"logs":             {"max-size: 20m, ", "", "api may log without end"},
		"health":           {"test: [CMD, nc, -z, 127.0.0.1, \"7233\"]", "disable: true", "temporal is not asked whether it works"},
		"order":            {"migrate: {condition: service_completed_successfully}\n  apply", "migrate: {condition: service_started}\n  apply", "does not wait until migrate works"},
		"inside":           {"books: {internal: true}", "books: {}", "the network books has a way out"},
		"database outside": {"networks: [books]\n\n  histories", "networks: [books, edge]\n\n  histories", "books is on edge, which has a way out"},
		"guest of signers": {"networks: [books, flows, operator]", "networks: [books, flows, signers]", "worker-momo is on the signers' network"},
		"strange secret":   {"      - payload_keys\n", "      - payload_keys\n      - vault_token_tron\n", "worker-flows holds vault_token_tron"},
		"strange key":      {"<<: [*common, *books, *temporal, *tron, *ethereum, *solana, *files]", "<<: [*common, *books, *temporal, *tron, *ethereum, *solana, *files]\n      KIVUKO_MASTER_KEY: vault://kivuko", "api knows the master key"},
		"open secret":      {"KIVUKO_API_PEPPERS_FILE: /run/secrets/peppers", "KIVUKO_API_PEPPERS: abc", "has KIVUKO_API_PEPPERS in its environment"},
		"buttons":          {"      TEMPORAL_START_WORKFLOW_DISABLED: \"true\"\n", "", "the Web UI lacks TEMPORAL_START_WORKFLOW_DISABLED"},
		"shared identity":  {"{source: client_api_key, ", "{source: client_flows_key, ", "api shows the certificate of worker-flows"},
		"open Web UI":      {"    networks: [flows, ui]\n", "    networks: [flows, ui]\n    ports: [\"127.0.0.1:8234:8080\"]\n", "the Web UI is reached without the login"},
		"lost secret":      {"      - peppers\n", "", "KIVUKO_API_PEPPERS_FILE in /run/secrets/peppers, which it is not given"},
	} {
		t.Run(name, func(t *testing.T) {
			content := read(t, compose)
			broken := bytes.Replace(content, []byte(c.old), []byte(c.bad), 1)
			if bytes.Equal(content, broken) {
				t.Fatalf("the file does not say %q", c.old)
			}
			var found []string
			if p, err := loadCompose(t, broken); err != nil {
				found = []string{err.Error()}
			} else {
				found = faults(p)
			}
			if !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("found %q, want %q among it", found, c.want)
			}
		})
	}
}

// notOfADeployment are the variables that this deployment does not use: those of the local stack, of the cold machine, of
// another Temporal, and those that a pipeline sets.
var notOfADeployment = regexp.MustCompile(`_(DEVELOPMENT|POLL|OPEN|RATE_FACTOR|BUILD_ID|PROMOTE|COLD_KEY|TEMPORAL_API_KEY)$`)

// unset lists the variables that one of their readers does not get. All readers must get the same limits for money.
func unset(p *types.Project) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(variables())) {
		if notOfADeployment.MatchString(name) {
			continue
		}
		for _, service := range slices.Sorted(maps.Keys(p.Services)) {
			s := p.Services[service]
			_, plain := s.Environment[name]
			_, file := s.Environment[name+fromFile]
			if reads(s, name) && !plain && !file {
				out = append(out, service+" is not given "+name)
			}
		}
	}
	return out
}

func TestComposeSetsTheVariablesOfThePage(t *testing.T) {
	p := deployment(t)
	for _, s := range p.Services {
		for name := range s.Environment {
			if _, ok := variables()[strings.TrimSuffix(name, fromFile)]; !ok && strings.HasPrefix(name, prefix) {
				t.Errorf("%s is given %s, which docs/configuration.md does not describe", s.Name, name)
			}
		}
	}
	for _, fault := range unset(p) {
		t.Error(fault)
	}
	delete(p.Services["signer-tron"].Environment, "KIVUKO_SCREENING_URL")
	delete(p.Services["worker-momo"].Environment, "KIVUKO_MOMO_HAKIKISHA")
	want := []string{"worker-momo is not given KIVUKO_MOMO_HAKIKISHA", "signer-tron is not given KIVUKO_SCREENING_URL"}
	if got := unset(p); !slices.Equal(got, want) {
		t.Errorf("%q are found missing, want %q", got, want)
	}
}

func TestExampleListsTheSettings(t *testing.T) {
	used, listed := map[string]bool{}, map[string]bool{"COMPOSE_PROFILES": true}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_0-9]+)`).FindAllSubmatch(read(t, compose), -1) {
		used[string(m[1])] = true
	}
	used["COMPOSE_PROFILES"] = true
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_0-9]+)=`).FindAllSubmatch(read(t, example), -1) {
		listed[string(m[1])] = true
	}
	if !maps.Equal(used, listed) {
		t.Errorf("the compose file uses %v, and the example lists %v", slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(listed)))
	}
}

// Every queue of temporal.yaml has one service that serves it, and no service serves an unknown queue.
func TestEveryQueueHasAWorker(t *testing.T) {
	_, queues, _ := strings.Cut(string(read(t, "../../temporal.yaml")), "\nqueues:\n")
	queues, _, _ = strings.Cut(queues, "\ncalls:\n")
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+):`).FindAllStringSubmatch(queues, -1) {
		want = append(want, m[1])
	}
	for _, s := range deployment(t).Services {
		if i := slices.Index(s.Command, "-queues"); i >= 0 {
			got = append(got, strings.Split(s.Command[i+1], ",")...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("temporal.yaml has the queues %v, and the services serve %v", want, got)
	}
}

// The containers run the versions with which the local stack was tested.
func TestTemporalIsTheTestedRelease(t *testing.T) {
	stack := string(read(t, "../go.mod"))
	for image, module := range map[string]string{
		"temporalio/server": "go.temporal.io/server", "temporalio/admin-tools": "go.temporal.io/server", "temporalio/ui": "github.com/temporalio/ui-server/v2",
	} {
		want := regexp.MustCompile(regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(stack)
		if want == nil {
			t.Fatalf("dev/go.mod does not name %s", module)
		}
		found := false
		for _, s := range deployment(t).Services {
			if name, tag, _ := strings.Cut(s.Image, ":"); name == image {
				found = true
				if tag != want[1] {
					t.Errorf("%s is %s, and the local stack runs %s", image, tag, want[1])
				}
			}
		}
		if !found {
			t.Errorf("no service has the image %s", image)
		}
	}
}

// Secrets are beside the compose file, where git and the build ignore them.
func TestSecretsStayOutOfGit(t *testing.T) {
	ignored := string(read(t, folder+"/.gitignore"))
	for _, line := range []string{"/.env", "/secrets/"} {
		if !strings.Contains(ignored, line+"\n") {
			t.Errorf("docker/.gitignore does not name %s", line)
		}
	}
	for name, s := range deployment(t).Secrets {
		if filepath.Base(filepath.Dir(s.File)) != "secrets" {
			t.Errorf("the secret %s lies in %s", name, s.File)
		}
	}
}
