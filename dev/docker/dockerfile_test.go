package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const dockerfile = "../../docker/Dockerfile"

// bases replaces the registry: the linter needs only an empty configuration.
type bases struct{}

func (bases) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config, err := json.Marshal(ocispecs.Image{Platform: ocispecs.Platform{OS: "linux", Architecture: "amd64"}})
	return ref, digest.FromString(ref), config, err
}

func (bases) ResolveSourceMetadata(context.Context, *pb.SourceOp, sourceresolver.Opt) (*sourceresolver.MetaResponse, error) {
	return nil, nil //nolint:nilnil // the conversion only needs configurations
}

func lintDockerfile(t *testing.T, content []byte) []string {
	t.Helper()
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", content)
	source.Definition = &llb.Definition{}
	results, err := dockerfile2llb.DockerfileLint(t.Context(), content, dockerfile2llb.ConvertOpt{
		SourceMap: source, MetaResolver: bases{},
		TargetPlatform: &ocispecs.Platform{OS: "linux", Architecture: "amd64"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	if results.Error != nil {
		found = append(found, "error: "+results.Error.Message)
	}
	for _, w := range results.Warnings {
		found = append(found, w.RuleName+": "+w.Detail)
	}
	return found
}

func TestDockerfileHasNoFaults(t *testing.T) {
	content := read(t, dockerfile)
	for _, fault := range lintDockerfile(t, content) {
		t.Error(fault)
	}
	// The linter works: it finds a known fault.
	for old, bad := range map[string]string{
		`CMD ["api"]`:                `CMD api`,
		"FROM golang:":               "from golang:",
		"FROM scratch\n":             "FROM scratch AS build\n",
		"ENV KIVUKO_API_LISTEN":      "ENV DATABASE_PASSWORD=x KIVUKO_API_LISTEN",
		"HEALTHCHECK --interval=15s": "HEALTHCHECK --intervall=15s",
	} {
		broken := bytes.Replace(content, []byte(old), []byte(bad), 1)
		if bytes.Equal(broken, content) || len(lintDockerfile(t, broken)) == 0 {
			t.Errorf("%q in place of %q is no fault?", bad, old)
		}
	}
}

// Our own rules: the base images are pinned and name no registry, and the last stage is small and not root's.
func TestDockerfileKeepsOurRules(t *testing.T) {
	file, err := parser.Parse(bytes.NewReader(read(t, dockerfile)))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(file.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
		if s.BaseName != "scratch" && !pinned(s.BaseName) {
			t.Errorf("%s is not pinned to a tag without a registry", s.BaseName)
		}
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is based on %s, not on scratch", last.BaseName)
	}
	user, healthy, copies := "", false, []string{}
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			healthy = strings.Join(c.Health.Test, " ") == "CMD /kivuko health api"
		case *instructions.CopyCommand:
			copies = append(copies, c.From+c.SourcePaths[0]+" "+c.DestPath)
		case *instructions.RunCommand, *instructions.AddCommand:
			t.Errorf("the image itself runs or adds something: %v", c)
		}
	}
	if user != imageUser {
		t.Errorf("the image runs as %q, not as the number %s", user, imageUser)
	}
	if want := []string{"build/out/image/ /", "build/out/spool/ " + spool + "/", "build/out/heads/ " + heads + "/", "build/out/files/ " + kept + "/"}; !slices.Equal(copies, want) {
		t.Errorf("the image holds %q, and the checks run with %q", copies, want)
	}
	if !healthy {
		t.Error("the image's health check does not run the binary")
	}
	if goVersion := "golang:" + goDirective(t) + "-"; !strings.HasPrefix(stages[0].BaseName, goVersion) {
		t.Errorf("the image is built with %s, and go.mod requires %s", stages[0].BaseName, goVersion)
	}
}

// pinned reports whether an image has an exact tag and no registry in its name.
func pinned(image string) bool {
	name, tag, ok := strings.Cut(image, ":")
	host, _, nested := strings.Cut(name, "/")
	return ok && strings.Count(tag, ".") >= 1 && (!nested || !strings.ContainsAny(host, ".:"))
}

func goDirective(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(string(read(t, "../../go.mod"))) {
		if v, ok := strings.CutPrefix(line, "go "); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatal("go.mod names no version of Go")
	return ""
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
