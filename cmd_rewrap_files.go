package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/store"
)

// runRewrapFiles seals the keys of files with the current master key where a former one seals them. It runs with the API's settings.
// The files themselves stay as they are. A crash loses nothing, because each key keeps its earlier seals; it is run again.
func runRewrapFiles(ctx context.Context, p process, _ []string) error {
	if err := keys.HardenProcess(); err != nil {
		return err
	}
	if err := p.config.check("rewrap-files"); err != nil {
		return err
	}
	db, err := openStore(ctx, p, store.RoleAPI, store.Options{})
	if err != nil {
		return err
	}
	defer closing(p, db)
	vault, err := p.config.filesVault()
	if err != nil {
		return err
	}
	done, err := rewrapFiles(ctx, db, fileKeys{vault})
	if err != nil {
		return fmt.Errorf("rewrap-files: after %d keys: %w", done, err)
	}
	uses, err := db.FileKeysByMaster(ctx)
	if err != nil {
		return err
	}
	return reportRewrapped(p.out, done, vault.MasterKey(), uses)
}

// rewrapFiles seals each key anew whose master key is not the current one, and returns their number. A new seal was opened once
// before it is stored.
func rewrapFiles(ctx context.Context, db *store.Store, k fileKeys) (int, error) {
	done, after := 0, uuid.Nil
	for {
		page, err := db.FileKeysOfOtherMasters(ctx, k.vault.MasterKey(), after, rewrapPage)
		if err != nil || len(page) == 0 {
			return done, err
		}
		for _, old := range page {
			if err := rewrapFile(ctx, db, k, old); err != nil {
				return done, fmt.Errorf("file %s: %w", old.FileID, err)
			}
			done, after = done+1, old.FileID
		}
	}
}

func rewrapFile(ctx context.Context, db *store.Store, k fileKeys, old exchange.SealedFileKey) error {
	key, err := k.Open(ctx, old)
	if err != nil {
		return err
	}
	defer clear(key)
	anew, err := k.Seal(ctx, old.FileID, key)
	if err != nil {
		return err
	}
	return db.SealFileKeyAnew(ctx, anew, exchange.System("operator"))
}
