// Package certificates makes the certificates by which the processes of a local stack know Temporal, and Temporal knows them, as
// docker/certificates.sh does for a deployment. They are made anew for each run.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"kivuko/dev/ports"
)

// Server is the name of Temporal's frontend in its certificate.
const Server = "temporal"

// Workers is the certificate of Temporal's own workers, which are clients of its frontend.
const Workers = "temporal-workers"

const life = 398 * 24 * time.Hour

// Authority signs certificates for one use. Those of servers and those of clients have different ones, so that a server's
// certificate opens no door.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	der         []byte
}

// NewAuthority makes an authority.
func NewAuthority(name string) (Authority, error) {
	a := Authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
		a.der, err = a.sign(a.certificate, &a.key.PublicKey)
	}
	return a, err
}

func (a Authority) sign(c *x509.Certificate, public *ecdsa.PublicKey) ([]byte, error) {
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(life)
	return x509.CreateCertificate(rand.Reader, c, a.certificate, public, a.key)
}

// Write writes the authority's certificate, without its key, into a directory and returns the file.
func (a Authority) Write(dir, name string) (string, error) {
	path := filepath.Join(dir, name+".crt")
	return path, write(path, "CERTIFICATE", a.der)
}

// Issue writes a certificate and its key into a directory and returns the two files. A server's is also one of this machine.
func (a Authority) Issue(dir, name string, use x509.ExtKeyUsage) (certificate, key string, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return "", "", err
	}
	const serialBits = 120
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return "", "", err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	if use == x509.ExtKeyUsageServerAuth {
		c.IPAddresses = []net.IP{net.ParseIP(ports.Loopback)}
	}
	der, err := a.sign(c, &k.PublicKey)
	if err != nil {
		return "", "", err
	}
	certificate, key = Files(dir, name)
	return certificate, key, errors.Join(write(certificate, "CERTIFICATE", der), write(key, "PRIVATE KEY", secret))
}

func write(path, kind string, der []byte) error {
	const mode = 0o600
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// Files are the files of a certificate and of its key.
func Files(dir, name string) (certificate, key string) {
	return filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
}

// Authorities are the files of the two authorities' certificates.
func Authorities(dir string) (servers, clients string) {
	return filepath.Join(dir, "servers.crt"), filepath.Join(dir, "clients.crt")
}

// Make writes into a directory the certificates of Temporal's frontend and of its clients, which no other user can read.
func Make(dir string, clients ...string) error {
	const mode = 0o700
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	servers, err := NewAuthority("servers")
	if err != nil {
		return err
	}
	if _, err := servers.Write(dir, "servers"); err != nil {
		return err
	}
	if _, _, err := servers.Issue(dir, Server, x509.ExtKeyUsageServerAuth); err != nil {
		return err
	}
	ours, err := NewAuthority("clients")
	if err != nil {
		return err
	}
	if _, err := ours.Write(dir, "clients"); err != nil {
		return err
	}
	for _, name := range append([]string{Workers}, clients...) {
		if _, _, err := ours.Issue(dir, name, x509.ExtKeyUsageClientAuth); err != nil {
			return err
		}
	}
	return nil
}

// Client returns the settings of a connection to a server that an authority vouches for, showing a certificate.
func Client(authority, certificate, key string) (*tls.Config, error) {
	text, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: Server, MinVersion: tls.VersionTLS12}
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	if certificate != "" {
		own, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
