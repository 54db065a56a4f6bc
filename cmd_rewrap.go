package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/store"
)

// rewrapPage bounds how many keys are read at once.
const rewrapPage = 100

// runRewrap seals the keys of one network, of wallets and of owners of accounts of several owners, with the current master key where a former one seals them. It runs with the signer's
// settings. A crash loses nothing, because each key keeps its earlier seals; it is run again.
func runRewrap(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("rewrap", flag.ContinueOnError)
	name := flags.String("network", "", "the network whose keys are sealed anew")
	if err := p.prepare(flags, args); err != nil {
		return err
	}
	network := exchange.Network(*name)
	if !network.Valid() {
		return fmt.Errorf("rewrap: -network must name a network, not %q", *name)
	}
	if err := keys.HardenProcess(); err != nil {
		return err
	}
	db, err := openStore(ctx, p, store.RoleSigner, store.Options{})
	if err != nil {
		return err
	}
	defer closing(p, db)
	vault, err := p.config.vault()
	if err != nil {
		return err
	}
	done, err := rewrap(ctx, db, vault, network)
	if err != nil {
		return fmt.Errorf("rewrap: after %d keys: %w", done, err)
	}
	uses, err := db.KeysByMaster(ctx, network)
	if err != nil {
		return err
	}
	return reportRewrapped(p.out, done, vault.MasterKey(), uses)
}

// reportRewrapped says how many keys were sealed anew, and how many each master key seals now.
func reportRewrapped(out io.Writer, done int, master string, uses []exchange.MasterKeyUse) error {
	if _, err := fmt.Fprintf(out, "%d keys were sealed anew by %s\n", done, master); err != nil {
		return err
	}
	for _, u := range uses {
		if _, err := fmt.Fprintf(out, "%s seals %d\n", u.MasterKey, u.Keys); err != nil {
			return err
		}
	}
	return nil
}

// rewrap seals each key anew whose master key is not the current one, and returns their number. A new seal was opened once before it
// is stored.
func rewrap(ctx context.Context, db *store.Store, vault *keys.Vault, n exchange.Network) (int, error) {
	done, after := 0, exchange.SealedKey{}
	for {
		page, err := db.KeysOfOtherMasters(ctx, n, vault.MasterKey(), after, rewrapPage)
		if err != nil || len(page) == 0 {
			return done, err
		}
		for _, k := range page {
			sealed, err := vault.Rewrap(ctx, keys.Sealed{
				Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm),
			}, keys.Ref{WalletID: k.WalletID, Network: k.Network, Purpose: k.Purpose})
			if err != nil {
				return done, fmt.Errorf("key of wallet %s %s: %w", k.WalletID, k.Purpose, err)
			}
			k.Ciphertext, k.MasterKey = sealed.Ciphertext, sealed.MasterKey
			if err := db.SealKeyAnew(ctx, k, exchange.System("operator")); err != nil {
				return done, fmt.Errorf("key of wallet %s %s: %w", k.WalletID, k.Purpose, err)
			}
			done, after = done+1, k
		}
	}
}
