package worker

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// WebhookSealer seals the secrets of webhooks with AES-256-GCM and a random nonce. A secret is bound to its endpoint and its
// key's id, so it can't be opened from another row. These master keys protect nothing else, because the worker that opens
// secrets also calls addresses outside our control.
type WebhookSealer struct {
	current string
	aeads   map[string]cipher.AEAD
}

var _ activities.WebhookOpener = (*WebhookSealer)(nil)

// NewWebhookSealer returns a sealer that seals with the first key and opens with all of them.
func NewWebhookSealer(keys []Key) (*WebhookSealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("webhook keys: at least one is required")
	}
	s := &WebhookSealer{current: keys[0].ID, aeads: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if k.ID == "" || len(k.Secret) != KeySize || s.aeads[k.ID] != nil {
			return nil, fmt.Errorf("webhook keys: key %q must have a unique name and %d bytes", k.ID, KeySize)
		}
		block, err := aes.NewCipher(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("webhook keys: %q: %w", k.ID, err)
		}
		if s.aeads[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("webhook keys: %q: %w", k.ID, err)
		}
	}
	return s, nil
}

func webhookBinding(k exchange.WebhookKey) []byte {
	return []byte("webhook " + k.EndpointID.String() + " " + k.ID.String() + " " + k.MasterKey)
}

// SealWebhookSecret seals a secret into a key that has its ids.
func (s *WebhookSealer) SealWebhookSecret(k exchange.WebhookKey, secret string) exchange.WebhookKey {
	k.MasterKey = s.current
	k.Sealed = s.aeads[s.current].Seal(nil, nil, []byte(secret), webhookBinding(k)) //nolint:gosec // nil asks for a random nonce, which is put before the ciphertext
	return k
}

// OpenWebhookSecret opens a sealed secret; CodeInternal when its key is unknown or the secret was changed.
func (s *WebhookSealer) OpenWebhookSecret(k exchange.WebhookKey) (string, error) {
	aead := s.aeads[k.MasterKey]
	if aead == nil {
		return "", exchange.Errorf(exchange.CodeInternal, "The webhook key %q is not configured.", k.MasterKey)
	}
	secret, err := aead.Open(nil, nil, k.Sealed, webhookBinding(k))
	if err != nil {
		return "", exchange.Errorf(exchange.CodeInternal, "The secret of webhook key %s can't be opened.", k.ID)
	}
	return string(secret), nil
}

// WebhookFlows wakes the flows of endpoints.
type WebhookFlows struct{ Client client.Client }

// WakeWebhooks starts the flow of an endpoint, or signals the running one.
func (f WebhookFlows) WakeWebhooks(ctx context.Context, endpoint uuid.UUID) error {
	_, err := f.Client.SignalWithStartWorkflow(ctx, workflows.WebhooksID(endpoint), workflows.SignalWebhooks, nil,
		client.StartWorkflowOptions{
			TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary: workflows.WebhooksSummary,
		}, workflows.TypeDeliverWebhooks, activities.WebhookInput{EndpointID: endpoint})
	return err
}
