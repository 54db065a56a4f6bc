package stack

import (
	"crypto/tls"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"

	"kivuko/dev/certificates"
	"kivuko/worker"
)

// The variables by which a process of the product reaches Temporal.
const (
	authorityVariable   = "TEMPORAL_TLS_SERVER_CA_CERT_PATH" // of Temporal's SDK
	certificateVariable = "KIVUKO_TEMPORAL_CERTIFICATE_FILE"
	keyVariable         = "KIVUKO_TEMPORAL_PRIVATE_KEY_FILE"
)

// identities are the processes that have a certificate for Temporal. The Web UI and ourselves, who look at the stack, have one too.
func identities() []string {
	all := []string{ProcessAPI, ProcessApply, ProcessResume, identityUI, identityTools}
	for _, queue := range slices.Concat(Queues, SolanaQueues) {
		all = append(all, ProcessWorker(queue))
	}
	return all
}

const (
	identityUI    = "web-ui"
	identityTools = "tools"
)

func (s *Stack) certificates() string { return filepath.Join(s.State, "certificates") }

// Tools is the environment with which a program that watches the stack reaches Temporal.
func (s *Stack) Tools() func(name string) string {
	env := map[string]string{}
	for _, kv := range s.ProductEnvironment(ProcessWorker("flows")) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	env[certificateVariable], env[keyVariable] = certificates.Files(s.certificates(), identityTools)
	return func(name string) string { return env[name] }
}

// TLS returns the settings of a connection to Temporal from the environment of a process of the product.
func TLS(get func(name string) string) (*tls.Config, error) {
	return certificates.Client(get(authorityVariable), get(certificateVariable), get(keyVariable))
}

// Dial returns a client of Temporal with the product's keys, from the environment of a process of the product.
func Dial(get func(name string) string, identity string) (client.Client, error) {
	c := worker.ClientConfig{Address: get("KIVUKO_TEMPORAL_ADDRESS"), Namespace: get("KIVUKO_TEMPORAL_NAMESPACE"), Identity: identity}
	var err error
	if c.Keys, err = PayloadKeys(get); err != nil {
		return nil, err
	}
	if c.TLS, err = TLS(get); err != nil {
		return nil, err
	}
	// The SDK takes the authority from a variable of a process that has it, and then looks at nothing else of TLS: our certificate
	// is told apart.
	for into, name := range map[*string]string{&c.Certificate: certificateVariable, &c.PrivateKey: keyVariable} {
		text, err := os.ReadFile(get(name))
		if err != nil {
			return nil, err
		}
		*into = string(text)
	}
	return worker.DialLazy(c)
}

// PayloadKeys reads the ring of payload keys from the environment of a process of the product.
func PayloadKeys(get func(name string) string) ([]worker.Key, error) {
	var ring []worker.Key
	for _, key := range strings.Split(get("KIVUKO_TEMPORAL_PAYLOAD_KEYS"), ",") {
		id, digits, _ := strings.Cut(key, ":")
		secret, err := hex.DecodeString(digits)
		if err != nil || len(secret) == 0 {
			return nil, errors.New("KIVUKO_TEMPORAL_PAYLOAD_KEYS holds no keys")
		}
		ring = append(ring, worker.Key{ID: id, Secret: secret})
	}
	return ring, nil
}
