package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"

	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/files"
	"kivuko/files/inspect"
)

// FilesConfig is where the bytes of uploaded files are, and the keys that encrypt them.
type FilesConfig struct {
	// The object store: `file:///<directory>`, or `s3://<bucket>?region=<region>`, for another service than Amazon's with
	// `&endpoint=https://<host>&use_path_style=true`. Credentials for S3 come from the variables and files of the AWS command line. The
	// API writes and reads objects; the queue flows lists and deletes them.
	Bucket string `env:"BUCKET" envDefault:"file://./.local/files" for:"api flows" production:"required, an absolute directory or s3"`
	// The key that encrypts the keys of files, as `KIVUKO_MASTER_KEY` does those of wallets. It must be another one.
	Master string `env:"MASTER_KEY" for:"api rewrap-files" need:"api rewrap-files" production:"a key service, not a file"`
	// Former keys, which only decrypt what they encrypted.
	OldMasters []string `env:"OLD_MASTER_KEYS" for:"api rewrap-files"`
	// The token for a Vault.
	VaultToken string `env:"VAULT_TOKEN" for:"api rewrap-files" secret:"true"`
}

func (c Config) checkFiles(n *need) {
	u, err := url.Parse(c.Files.Bucket)
	known := err == nil && (u.Scheme == "s3" && u.Host != "" || u.Scheme == "file" && u.Path != "" && (u.Host == "" || u.Host == "."))
	n.rule(known, "KIVUKO_FILES_BUCKET must be file:///<directory> or s3://<bucket>")
	n.rule(!known || c.Mode != Production || u.Host != ".", "KIVUKO_FILES_BUCKET must be an absolute directory or s3 in production")
}

func (c Config) checkFilesMaster(n *need) {
	n.rule(c.Mode != Production || !strings.HasPrefix(c.Files.Master, "file:"), "KIVUKO_FILES_MASTER_KEY must name a key service in production, not a file")
	// In production no process knows both; there the database refuses files under a master key of wallets.
	n.rule(c.Keys.Master == "" || c.Keys.Master != c.Files.Master, "KIVUKO_FILES_MASTER_KEY must be another key than KIVUKO_MASTER_KEY")
}

// filesVault opens the master keys of files.
func (c Config) filesVault() (*keys.Vault, error) {
	v, err := keys.Open(keys.Config{
		MasterKey: c.Files.Master, OldMasterKeys: c.Files.OldMasters, VaultToken: c.Files.VaultToken, CreateLocal: c.Mode == Local, Production: c.Mode == Production,
	})
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_FILES_MASTER_KEY: %w", err)
	}
	return v, nil
}

// objects opens the object store for who lists and deletes.
func (c Config) objects() (*files.Store, error) {
	return files.Open(context.Background(), files.Config{Bucket: c.Files.Bucket}) // it does not connect yet
}

// uploads opens the object store for who takes and reads files.
func (c Config) uploads() (*files.Store, error) {
	vault, err := c.filesVault()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil { // where /proc is not mounted
		self, err = exec.LookPath(os.Args[0])
	}
	if err != nil {
		return nil, err
	}
	check := files.Process{Path: self, Args: []string{inspectCommand}, Read: inspect.ReadAnswer}
	return files.Open(context.Background(), files.Config{Bucket: c.Files.Bucket, Keys: fileKeys{vault}, Check: check.Check, Dir: c.API.SpoolDir})
}

// fileKeys seals the keys of files as the keystore seals those of wallets, for another purpose.
type fileKeys struct{ vault *keys.Vault }

func fileRef(id uuid.UUID) keys.DataRef { return keys.DataRef{Purpose: "file", ID: id} }

func (k fileKeys) Seal(ctx context.Context, id uuid.UUID, key []byte) (exchange.SealedFileKey, error) {
	sealed, master, err := k.vault.SealData(ctx, fileRef(id), key)
	return exchange.SealedFileKey{FileID: id, Ciphertext: sealed, MasterKey: master}, err
}

func (k fileKeys) Open(ctx context.Context, s exchange.SealedFileKey) ([]byte, error) {
	return k.vault.OpenData(ctx, fileRef(s.FileID), s.Ciphertext, s.MasterKey)
}
