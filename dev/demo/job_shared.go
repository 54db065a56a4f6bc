package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// proposalsPath is the API's path of payments from wallets of several owners.
const proposalsPath = "/api/v1/auth/multisig/proposals"

// proposed is how much USDT the merchant proposes to pay to a supplier.
const proposed = "7.5"

// shareTime bounds a payment from a wallet of several owners, which has to be final.
const shareTime = 5 * time.Minute

// multisigProposal has the fields of a proposal that the demo reads.
type multisigProposal struct {
	ID          uuid.UUID `json:"id"`
	Address     string    `json:"address"`
	Destination string    `json:"destination"`
	Amount      string    `json:"amount"`
	Status      string    `json:"status"`
	Detail      string    `json:"status_detail"`
	Required    int       `json:"required_approvals"`
	Given       int       `json:"approvals_given"`
	TxHash      string    `json:"tx_hash"`
}

// sharedJob is a payment from the wallet of several owners of one network. Otieno approves and executes, Njeri approves and is an owner.
type sharedJob struct {
	job
	desk   *desk
	wallet Shared
	hook   *hook
	last   string // the state that was printed
}

// PayShared has the merchant propose a payment from the wallet of several owners of each network: officers approve it, two owners sign what the
// chain will do, each with the own key, and an officer has their signatures sent. The merchant's own server gets a webhook of each step.
func PayShared(ctx context.Context, w Stack) (err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	d := &desk{Stack: w, began: time.Now()}
	if err := d.logIn(ctx); err != nil {
		return err
	}
	w.Say("A payment from the shared wallet of each network, beside the main job: Baraka proposes it, two officers approve it, two of three owners sign it.")
	h, err := listen(ctx, d.merchant, "multisig_proposal.*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	group, inner := errgroup.WithContext(ctx)
	for _, n := range w.Sharing() {
		group.Go(func() error {
			name := networkNames[n.Network]
			s := &sharedJob{job: job{Stack: w, node: n, buyer: person(VendorEmail), say: d.tells(name)}, desk: d, hook: h}
			if err := s.play(inner); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *sharedJob) play(ctx context.Context) error {
	wallet, found, err := SharedWallet(ctx, s.desk.merchant, s.node.Network)
	if s.wallet = wallet; err != nil || !found {
		return errors.Join(err, errors.New("there is no wallet of several owners"))
	}
	p, err := s.propose(ctx)
	if err != nil {
		return err
	}
	if p, err = s.approve(ctx, p); err != nil {
		return err
	}
	if err := s.sign(ctx, p); err != nil {
		return err
	}
	if p, err = s.follow(ctx, p, exchange.ProposalReady); err != nil {
		return err
	}
	if err := verb(ctx, s.desk.colleague, proposalsPath+"/"+p.ID.String(), "execute", nil, &p); err != nil {
		return err
	}
	s.say("Otieno has the proposal executed")
	if p, err = s.follow(ctx, p, exchange.ProposalExecuted); err != nil {
		return err
	}
	s.say("proposal executed: transaction %s", p.TxHash)
	if err := s.moved(ctx, p.TxHash, p.Destination, money.Must(money.USDT, proposed)); err != nil {
		return err
	}
	s.say("the chain confirms it: %s USDT arrived at %s", p.Amount, p.Destination)
	return s.told(ctx, p)
}

// propose has the merchant propose a payment to a supplier.
func (s *sharedJob) propose(ctx context.Context) (p multisigProposal, err error) {
	to, err := Stranger(s.node.Network)
	if err != nil {
		return p, err
	}
	in := map[string]any{"wallet_id": s.wallet.ID, "asset": "USDT", "amount": proposed, "destination": to, "reference": "invoice 4711"}
	if err := s.desk.merchant.Post(ctx, proposalsPath, "demo-proposal-"+uuid.NewString(), in, &p); err != nil {
		return p, fmt.Errorf("the proposal: %w", err)
	}
	s.say("Baraka proposes to pay %s USDT from the shared wallet to a supplier at %s: proposal %s", p.Amount, p.Destination, p.ID)
	return p, nil
}

// approve has two officers approve what they see, each with a passkey.
func (s *sharedJob) approve(ctx context.Context, p multisigProposal) (multisigProposal, error) {
	p, err := s.follow(ctx, p, exchange.ProposalApproving)
	if err != nil {
		return p, err
	}
	path := proposalsPath + "/" + p.ID.String()
	for _, officer := range []struct {
		name string
		*client.Client
	}{{"Njeri", s.desk.treasury}, {"Otieno", s.desk.colleague}} {
		if err := officer.Decide(ctx, path+"/approve", "demo-approve-"+uuid.NewString(), map[string]any{"note": "the invoice is in order"}, &p); err != nil {
			return p, fmt.Errorf("approve: %w", err)
		}
		s.say("%s approves the proposal: %d of %d officers", officer.name, p.Given, p.Required)
	}
	return s.follow(ctx, p, exchange.ProposalSigning)
}

// sign has two owners sign: Baraka with a tool of its own, and Njeri by a decision for the key in the key store. On TRON Njeri too has a tool.
func (s *sharedJob) sign(ctx context.Context, p multisigProposal) error {
	path := proposalsPath + "/" + p.ID.String()
	baraka, err := OutsideOwner(s.node.Network, BarakasKey)
	if err != nil {
		return err
	}
	y, err := s.payload(ctx, s.desk.merchant, path, baraka.Address, s.wallet.KeptKey())
	if err != nil {
		return err
	}
	s.say("the owners sign: %s", y.Says)
	if err := s.bring(ctx, path, "Baraka", baraka, y, p); err != nil {
		return err
	}
	if s.wallet.KeptKey() == "" {
		njeri, err := OutsideOwner(s.node.Network, NjerisKey)
		if err != nil {
			return err
		}
		return s.bring(ctx, path, "Njeri", njeri, y, p)
	}
	if y, err = s.payload(ctx, s.desk.treasury, path, baraka.Address, s.wallet.KeptKey()); err != nil {
		return err
	}
	if err := verb(ctx, s.desk.treasury, path, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Confirmation}, nil); err != nil {
		return err
	}
	s.say("Njeri, the other owner, confirms exactly this payload, and the key store signs with Njeri's key")
	return nil
}

// payload returns what these owners sign; empty addresses count for nothing where any owners may sign. Where the network wants their names, it is one of several.
func (s *sharedJob) payload(ctx context.Context, reader *client.Client, path string, owners ...string) (Payload, error) {
	var all struct {
		Payloads []Payload `json:"payloads"`
	}
	for {
		if err := reader.Get(ctx, path+"/payload", &all); err != nil {
			return Payload{}, err
		}
		for _, y := range all.Payloads {
			other := slices.ContainsFunc(owners, func(o string) bool { return !slices.Contains(y.Signers, o) })
			if y.Status == string(exchange.PayloadOpen) && (len(y.Signers) == 0 || !other) {
				return y, nil
			}
		}
		if err := pause(ctx); err != nil {
			return Payload{}, fmt.Errorf("there is nothing to sign for %s: %w", strings.Join(owners, " and "), err)
		}
	}
}

// bring has an owner outside read and sign what the payload shows, and the merchant send the signature.
func (s *sharedJob) bring(ctx context.Context, path, name string, by Owner, y Payload, p multisigProposal) error {
	signature, err := by.Sign(y, Agreement{From: s.wallet.Address, To: p.Destination, Amount: money.Must(money.USDT, proposed)})
	if err != nil {
		return err
	}
	if err := verb(ctx, s.desk.merchant, path, "confirm", map[string]any{"payload_id": y.ID, "signature": signature}, nil); err != nil {
		return err
	}
	s.say("%s's own tool reads the bytes, finds that payment and nothing else, and signs", name)
	return nil
}

// proposalWords describes each state of a proposal.
var proposalWords = map[string]string{
	"approving/approval":     "waiting for the officers",
	"approving/payload":      "the officers have released it; what the owners sign is prepared",
	"signing/owners":         "waiting for the signatures of two owners",
	"ready/execution":        "two owners have signed; an officer has it executed",
	"ready/signature":        "their signatures go into one transaction",
	"broadcasting/broadcast": "signed; being sent to the network",
	"broadcasting/finality":  "broadcast; waiting for a block",
	"confirming/finality":    "in a block; waiting until that is final",
}

// follow prints every change of the proposal until it has a status.
func (s *sharedJob) follow(ctx context.Context, p multisigProposal, until exchange.ProposalStatus) (multisigProposal, error) {
	for {
		if now := p.Status + "/" + p.Detail; now != s.last {
			s.last = now
			if text := proposalWords[now]; text != "" {
				s.say("proposal %s: %s", p.Status, text)
			}
		}
		switch status := exchange.ProposalStatus(p.Status); {
		case status == until:
			return p, nil
		case exchange.ProposalMachine.Terminal(status):
			return p, fmt.Errorf("the proposal ended %s (%s)", p.Status, p.Detail)
		}
		if err := s.again(ctx, s.desk.merchant, proposalsPath+"/"+p.ID.String(), &p); err != nil {
			return p, fmt.Errorf("the proposal is still %s (%s): %w", p.Status, p.Detail, err)
		}
	}
}

// told waits until the merchant's own server has got the webhook of the execution, after those of all steps before.
func (s *sharedJob) told(ctx context.Context, p multisigProposal) error {
	const object = "multisig_proposal."
	came, err := s.hook.about(ctx, p.ID, object+string(exchange.ProposalExecuted))
	if err != nil {
		return err
	}
	var steps []string
	for _, kind := range came {
		if step := strings.TrimPrefix(kind, object); step != "changed" {
			steps = append(steps, step)
		}
	}
	s.say("Baraka's own server got %d webhooks about the proposal: %s", len(came), strings.Join(steps, ", "))
	return nil
}
