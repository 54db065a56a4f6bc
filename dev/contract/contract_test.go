package contract

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kivuko/api"
)

// served writes the OpenAPI document as the service serves it, and returns the path.
func served(t *testing.T) string {
	t.Helper()
	raw, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "openapi.json")
	write(t, path, raw)
	return path
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out[:min(len(out), 4000)])
	}
}

// TestGoClientIsGeneratedAndCompiles runs oapi-codegen, at the version of dev/tools/go.mod and without options that
// ignore faults, and compiles types and client.
func TestGoClientIsGeneratedAndCompiles(t *testing.T) {
	document, out := served(t), filepath.Join(t.TempDir(), "client.gen.go")
	tools, err := filepath.Abs("../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "go", "tool", "-modfile="+tools, "oapi-codegen", "-package", "client", "-generate", "types,client", "-o", out, document)
	inside, err := filepath.Abs("client/client.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{inside: out}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	write(t, list, overlay)
	run(t, "go", "build", "-overlay", list, "./client")
}

// TestConformanceTypeScript runs openapi-typescript and compiles its output. `make conformance` fetches both tools.
func TestConformanceTypeScript(t *testing.T) {
	tools := os.Getenv("KIVUKO_OPENAPI_TYPESCRIPT")
	if tools == "" {
		t.Skip("openapi-typescript is not here (KIVUKO_OPENAPI_TYPESCRIPT); `make conformance` fetches it where npm is")
	}
	types := filepath.Join(t.TempDir(), "api.d.ts")
	run(t, filepath.Join(tools, "openapi-typescript"), served(t), "--output", types)
	run(t, filepath.Join(tools, "tsc"), "--noEmit", "--strict", types)
}
