package sandbox

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// credentials are the key pair that protects initiator passwords in requests.
type credentials struct {
	key         *rsa.PrivateKey
	certificate []byte // PEM
}

// CertificateName is the file of the certificate in the data directory.
const CertificateName = "certificate.pem"

const keyName = "key.pem"

// shared is the pair of all sandboxes in memory: making a pair takes longer than most tests.
var shared = sync.OnceValues(newCredentials)

func newCredentials() (*credentials, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "momo sandbox"},
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &credentials{key: key, certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// loadCredentials reads the pair of a data directory, and creates it the first time.
func loadCredentials(dir string) (*credentials, error) {
	if dir == "" {
		return shared()
	}
	certificate, err := os.ReadFile(filepath.Join(dir, CertificateName))
	if errors.Is(err, os.ErrNotExist) {
		return storeCredentials(dir)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyName))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, fmt.Errorf("%s: must be PEM", keyName)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyName, err)
	}
	return &credentials{key: key, certificate: certificate}, nil
}

// storeCredentials writes the key first: when the certificate exists, so does its key.
func storeCredentials(dir string) (*credentials, error) {
	c, err := newCredentials()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(c.key)})
	if err := os.WriteFile(filepath.Join(dir, keyName), keyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, CertificateName), c.certificate, 0o644); err != nil { //nolint:gosec // A certificate is public.
		return nil, err
	}
	return c, nil
}

// knows reports whether a security credential is the password encrypted for the certificate, or the fixed text that replaces
// it.
func (c *credentials) knows(credential, password, fixed string) bool {
	if equal(credential, fixed) {
		return true
	}
	sealed, err := base64.StdEncoding.DecodeString(credential)
	if err != nil {
		return false
	}
	//nolint:staticcheck // The operator prescribes this padding, and a sandbox has no secrets to protect.
	plain, err := rsa.DecryptPKCS1v15(nil, c.key, sealed)
	return err == nil && equal(string(plain), password)
}

func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
