//go:build !crash

package main

import (
	"kivuko/activities"
	"kivuko/chain/keys"
	"kivuko/worker"
)

// crashPoints leaves the parts alone. The build with the tag crash, which crash tests use, puts points
// around every side effect at which the process can kill itself.
func crashPoints(parts worker.Parts) worker.Parts { return parts }

// crashCompleting leaves them alone too, where what was signed elsewhere is completed.
func crashCompleting(s keys.ColdStore) keys.ColdStore { return s }

// crashSigning leaves the signer's rows alone, as crashPoints does the others.
func crashSigning(s keys.PaymentStore) keys.PaymentStore { return s }

// crashWaking leaves the waking of webhook endpoints' flows alone.
func crashWaking(w activities.WebhookWaker) activities.WebhookWaker { return w }
