package stack

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"

	"go.temporal.io/sdk/client"

	"kivuko/dev/certificates"
)

// TestDialShowsItsCertificate dials from a process of the stack, which has the SDK's own variable too.
func TestDialShowsItsCertificate(t *testing.T) {
	dir := t.TempDir()
	if err := certificates.Make(dir, ProcessAPI); err != nil {
		t.Fatal(err)
	}
	servers, clients := certificates.Authorities(dir)
	authority, err := os.ReadFile(clients)
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(certificates.Files(dir, certificates.Server))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: x509.NewCertPool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	config.ClientCAs.AppendCertsFromPEM(authority)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	shook := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = tls.Server(conn, config).HandshakeContext(t.Context())
			_ = conn.Close()
		}
		shook <- err
	}()
	certificate, key := certificates.Files(dir, ProcessAPI)
	env := map[string]string{
		"KIVUKO_TEMPORAL_ADDRESS": l.Addr().String(), "KIVUKO_TEMPORAL_NAMESPACE": "kivuko", "KIVUKO_TEMPORAL_PAYLOAD_KEYS": payloadKeys(ProcessAPI),
		certificateVariable: certificate, keyVariable: key,
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	t.Setenv(authorityVariable, servers)
	c, err := Dial(os.Getenv, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.CheckHealth(t.Context(), &client.CheckHealthRequest{}) }() // no Temporal answers, only the handshake counts
	if err := <-shook; err != nil {
		t.Error(err)
	}
}
