package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tink-crypto/tink-go-awskms/v3/integration/awskms"
	"github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/registry"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

const (
	schemeAWS   = "awskms://"
	schemeVault = "hcvault://"
	schemeFile  = "file://"
	tinkAWS     = "aws-kms://" // Tink's name of schemeAWS
	// maxKeyFile bounds the size of a key file.
	maxKeyFile = 64 << 10
	// keyFileMode makes the key file readable by its owner alone; any further permission is refused.
	keyFileMode fs.FileMode = 0o600
)

// openMaster connects to one master key.
func openMaster(c Config, uri string, create bool) (master, error) {
	switch {
	case strings.HasPrefix(uri, schemeAWS):
		native := tinkAWS + strings.TrimPrefix(uri, schemeAWS)
		client, err := awskms.NewClientWithOptions(context.Background(), native)
		return remoteMaster(client, uri, native, err)
	case strings.HasPrefix(uri, schemeVault):
		if c.VaultToken == "" {
			return master{}, fmt.Errorf("keys: master key %s: the Vault token is missing", uri)
		}
		client, err := hcvault.NewClient(uri, c.VaultTLS, c.VaultToken)
		return remoteMaster(client, uri, uri, err)
	case strings.HasPrefix(uri, schemeFile):
		if c.Production {
			return master{}, errors.New("keys: master key: a key file is refused in production; use awskms:// or hcvault://")
		}
		return fileMaster(uri, create)
	}
	return master{}, fmt.Errorf("keys: master key: %q must begin with %s, %s or %s", bounded(uri), schemeAWS, schemeVault, schemeFile)
}

func bounded(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func remoteMaster(client registry.KMSClient, name, uri string, err error) (master, error) {
	if err != nil {
		return master{}, fmt.Errorf("keys: master key %s: %w", name, err)
	}
	encryption, err := client.GetAEAD(uri)
	if err != nil {
		return master{}, fmt.Errorf("keys: master key %s: %w", name, err)
	}
	return master{name: name, aead: encryption}, nil
}

// fileMaster reads a key file for development. Its name is the id of the key inside, so that the file can be moved.
func fileMaster(uri string, create bool) (master, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host != "" || !filepath.IsAbs(u.Path) {
		return master{}, fmt.Errorf("keys: master key: %q must be file:/// and an absolute path", bounded(uri))
	}
	if create {
		if err := createKeyFile(u.Path); err != nil {
			return master{}, err
		}
	}
	content, err := readKeyFile(u.Path)
	if err != nil {
		return master{}, err
	}
	defer wipe(content)
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return master{}, errors.New("keys: the key file holds no Tink keyset")
	}
	encryption, err := aead.New(handle)
	if err != nil {
		return master{}, errors.New("keys: the key file holds no AEAD key")
	}
	primary, err := handle.Primary()
	if err != nil {
		return master{}, errors.New("keys: the key file holds no primary key")
	}
	return master{name: fmt.Sprintf("local:%08x", primary.KeyID()), aead: encryption}, nil
}

// readKeyFile refuses a file that others may read. It checks after opening, so that the file can't be replaced in between.
func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keys: key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("keys: key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("keys: key file: must be a regular file")
	}
	if extra := info.Mode().Perm() &^ keyFileMode; extra != 0 {
		return nil, fmt.Errorf("keys: key file: has permissions %04o, at most %04o are allowed", info.Mode().Perm(), keyFileMode)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("keys: key file: %w", err)
	}
	if len(content) > maxKeyFile {
		return nil, fmt.Errorf("keys: key file: larger than %d bytes", maxKeyFile)
	}
	return content, nil
}

// createKeyFile makes a key file if there is none. It writes a complete temporary file and links it into place, so that
// neither a crash nor a second process leaves half a key or two keys.
func createKeyFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("keys: no new master key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-key-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("keys: key file: %w", err)
	}
	defer os.Remove(f.Name())
	err = insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f))
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("keys: key file: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keys: key file: %w", err)
	}
	return nil
}
