//go:build crash

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/worker"
)

// crashVariable names a directory. A file in it arms a point: the process that reaches the point removes
// the file and dies. The file is removed first, so that each arming kills once, whatever restarts. It names
// the queue whose process is to die, because those of other networks come to the same points; an empty one
// is for whoever comes first. This is no configuration of the service and exists in no build of it, so it is
// read here and not in config.go.
const crashVariable = "KIVUKO_CRASH_DIR"

// crash is the directory in which points are armed.
type crash string

// crashPoints puts a point before and after every side effect of the activities. SIGKILL leaves no time
// for anything: no deferred call, no answer to Temporal, no end of a transaction.
func crashPoints(parts worker.Parts) worker.Parts {
	dir := crash(os.Getenv(crashVariable)) //nolint:forbidigo // see crashVariable
	if dir == "" {
		return parts
	}
	if p := parts.Flows; p != nil {
		p.Store = crashOrders{p.Store, dir}
	}
	if p := parts.Send; p != nil {
		p.Store = crashTransfers{p.Store, dir}
	}
	if p := parts.Decide; p != nil {
		p.Store = crashApprovals{p.Store, dir}
	}
	if p := parts.Momo; p != nil {
		p.Store, p.Operator = crashAttempts{p.Store, dir}, crashOperator{p.Operator, dir}
	}
	if p := parts.Refund; p != nil {
		p.Store, p.Operator = crashRefunds{p.Store, dir}, crashOperator{p.Operator, dir}
	}
	crashSales(parts, dir)
	if p := parts.List; p != nil {
		p.Store = crashStatement{p.Store, dir}
	}
	if p := parts.Relay; p != nil {
		p.Store = crashRelay{p.Store, dir}
	}
	if p := parts.Hooks; p != nil {
		p.Store = crashWebhooks{p.Store, dir}
	}
	for _, p := range parts.Chains {
		p.Store, p.Client = crashChain{p.Store, dir}, crashReader(p.Client, dir)
	}
	for _, p := range parts.Watch {
		p.Store = crashDeposits{p.Store, dir}
	}
	for _, p := range parts.Cold {
		p.Store = crashCold{p.Store, dir}
	}
	for _, p := range parts.Sign {
		p.Signer, p.Store = crashSigner{p.Signer, dir}, crashParking{p.Store, dir}
		if p.Cold != nil {
			p.Cold = crashCosigner{p.Cold, dir}
		}
		p.Recipients.Store = crashRecipients{p.Recipients.Store, dir}
	}
	for _, p := range parts.Wallet {
		p.Keys, p.Store = crashKeys{p.Keys, dir}, crashWallets{p.Store, dir}
	}
	return parts
}

// crashSigning puts points around the storing of a signature.
func crashSigning(s keys.PaymentStore) keys.PaymentStore {
	dir := crash(os.Getenv(crashVariable)) //nolint:forbidigo // see crashVariable
	if dir == "" {
		return s
	}
	return crashSignatures{s, dir}
}

// point kills the process when it is armed here.
func (c crash) point(name string) {
	file := filepath.Join(string(c), name)
	if queue, err := os.ReadFile(file); err == nil && len(queue) > 0 && !slices.Contains(os.Args, string(queue)) {
		return
	}
	switch err := os.Remove(file); {
	case err == nil:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case !errors.Is(err, fs.ErrNotExist):
		panic("crash point " + name + ": " + err.Error())
	}
}

// around does a side effect between its two points.
func around[T any](c crash, name string, do func() (T, error)) (T, error) {
	c.point("before:" + name)
	v, err := do()
	c.point("after:" + name)
	return v, err
}

// step is around for what gives nothing but an error.
func step(c crash, name string, do func() error) error {
	_, err := around(c, name, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

type crashOrders struct {
	activities.OrderStore
	crash
}

func (s crashOrders) OpenOrder(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	return around(s.crash, "OpenOrder", func() (exchange.Order, error) { return s.OrderStore.OpenOrder(ctx, r, by) })
}

func (s crashOrders) CloseOrder(ctx context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, by exchange.Principal) (exchange.Order, error) {
	return around(s.crash, "CloseOrder", func() (exchange.Order, error) { return s.OrderStore.CloseOrder(ctx, id, to, detail, by) })
}

func (s crashOrders) SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error {
	return step(s.crash, "MarkOrder", func() error { return s.OrderStore.SetOrderDetail(ctx, id, detail) })
}

func (s crashOrders) CompleteOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return around(s.crash, "CompleteOrder", func() (exchange.Order, error) { return s.OrderStore.CompleteOrder(ctx, id) })
}

func (s crashOrders) RefundOrder(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	s.point("before:RefundOrder")
	o, r, err := s.OrderStore.RefundOrder(ctx, id, reason, by)
	s.point("after:RefundOrder")
	return o, r, err
}

func (s crashOrders) RetryChainPayment(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	return step(s.crash, "RetryChainPayment", func() error { return s.OrderStore.RetryChainPayment(ctx, id, by) })
}

func (s crashOrders) UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error) {
	return around(s.crash, "UseCommand", func() (exchange.OperatorCommand, error) {
		return s.OrderStore.UseCommand(ctx, id, objectType, objectID)
	})
}

type crashAttempts struct {
	activities.AttemptStore
	crash
}

func (s crashAttempts) BeginAttempt(ctx context.Context, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	s.point("before:BeginAttempt")
	stored, created, err := s.AttemptStore.BeginAttempt(ctx, a)
	s.point("after:BeginAttempt")
	return stored, created, err
}

func (s crashAttempts) RecordSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordSubmission", func() (exchange.PaymentAttempt, error) { return s.AttemptStore.RecordSubmission(ctx, id, sub) })
}

func (s crashAttempts) RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordFailure", func() (exchange.PaymentAttempt, error) { return s.AttemptStore.RecordFailure(ctx, id, o) })
}

func (s crashAttempts) SaveReceipt(ctx context.Context, o exchange.Observation) error {
	return step(s.crash, "SaveReceipt", func() error { return s.AttemptStore.SaveReceipt(ctx, o) })
}

func (s crashAttempts) AcceptPayment(ctx context.Context, id uuid.UUID, o exchange.Observation, now time.Time) (activities.PaymentOutcome, error) {
	return around(s.crash, "AcceptPayment", func() (activities.PaymentOutcome, error) { return s.AttemptStore.AcceptPayment(ctx, id, o, now) })
}

func (s crashAttempts) SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error {
	return step(s.crash, "SetOrderDetail", func() error { return s.AttemptStore.SetOrderDetail(ctx, id, detail) })
}

type crashOperator struct {
	activities.MomoOperator
	crash
}

func (s crashOperator) SubmitCollection(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	s.point("before:SubmitCollection")
	out := s.MomoOperator.SubmitCollection(ctx, a)
	s.point("after:SubmitCollection")
	return out
}

func (s crashOperator) SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	s.point("before:SubmitPayout")
	out := s.MomoOperator.SubmitPayout(ctx, a)
	s.point("after:SubmitPayout")
	return out
}

func (s crashOperator) Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	s.point("before:Resolve")
	out := s.MomoOperator.Resolve(ctx, a)
	s.point("after:Resolve")
	return out
}

type crashRefunds struct {
	activities.RefundStore
	crash
}

func (s crashRefunds) BeginRefundPayout(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return around(s.crash, "BeginRefundPayout", func() (exchange.PaymentAttempt, error) { return s.RefundStore.BeginRefundPayout(ctx, refundID, a) })
}

func (s crashRefunds) RecordSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordPayoutSubmission", func() (exchange.PaymentAttempt, error) { return s.RefundStore.RecordSubmission(ctx, id, sub) })
}

func (s crashRefunds) RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordPayoutFailure", func() (exchange.PaymentAttempt, error) { return s.RefundStore.RecordFailure(ctx, id, o) })
}

func (s crashRefunds) CompleteRefund(ctx context.Context, refundID, attemptID uuid.UUID, o exchange.Observation) error {
	return step(s.crash, "CompleteRefund", func() error { return s.RefundStore.CompleteRefund(ctx, refundID, attemptID, o) })
}

func (s crashRefunds) FailRefund(ctx context.Context, refundID uuid.UUID, detail string) error {
	return step(s.crash, "FailRefund", func() error { return s.RefundStore.FailRefund(ctx, refundID, detail) })
}

func (s crashRefunds) ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) error {
	return step(s.crash, "ResolveRefund", func() error { return s.RefundStore.ResolveRefund(ctx, refundID, reference, by) })
}

func (s crashRefunds) RefundException(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	return around(s.crash, "RefundException", func() (exchange.Refund, error) { return s.RefundStore.RefundException(ctx, id, by) })
}

func (s crashRefunds) ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) error {
	return step(s.crash, "ResolveException", func() error { return s.RefundStore.ResolveException(ctx, id, to, note, by) })
}

type crashChain struct {
	activities.ChainStore
	crash
}

func (s crashChain) RecordBroadcast(ctx context.Context, id uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	return around(s.crash, "RecordBroadcast", func() (exchange.ChainPayment, error) { return s.ChainStore.RecordBroadcast(ctx, id, code, accepted) })
}

func (s crashChain) RecordIncluded(ctx context.Context, id uuid.UUID, block uint64, blockID string) error {
	return step(s.crash, "RecordIncluded", func() error { return s.ChainStore.RecordIncluded(ctx, id, block, blockID) })
}

func (s crashChain) ApproveTopUp(ctx context.Context, id uuid.UUID, amount money.Amount, limit int) (exchange.ChainPayment, error) {
	return around(s.crash, "ApproveTopUp", func() (exchange.ChainPayment, error) { return s.ChainStore.ApproveTopUp(ctx, id, amount, limit) })
}

func (s crashChain) RecordVanished(ctx context.Context, id uuid.UUID) error {
	return step(s.crash, "RecordVanished", func() error { return s.ChainStore.RecordVanished(ctx, id) })
}

func (s crashChain) RecordExpired(ctx context.Context, id uuid.UUID, evidence string) error {
	return step(s.crash, "RecordExpired", func() error { return s.ChainStore.RecordExpired(ctx, id, evidence) })
}

func (s crashChain) RecordFinal(ctx context.Context, id uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error) {
	return around(s.crash, "RecordFinal", func() (exchange.ChainPayment, error) {
		return s.ChainStore.RecordFinal(ctx, id, ok, block, blockID, fee, code)
	})
}

type crashNode struct {
	activities.ChainReader
	crash
}

func (s crashNode) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	return around(s.crash, "Broadcast", func() (chain.Broadcast, error) { return s.ChainReader.Broadcast(ctx, raw) })
}

func (s crashNode) Locate(ctx context.Context, txID string) (chain.Location, error) {
	return around(s.crash, "Locate", func() (chain.Location, error) { return s.ChainReader.Locate(ctx, txID) })
}

// crashReader keeps a sequenced network sequenced.
func crashReader(c activities.ChainReader, dir crash) activities.ChainReader {
	if counter, ok := c.(chain.Sequenced); ok {
		return crashCounter{crashNode{c, dir}, counter}
	}
	if durable, ok := c.(chain.NonceReader); ok {
		return crashDurable{crashNode{c, dir}, durable}
	}
	return crashNode{c, dir}
}

type crashDurable struct {
	crashNode
	chain.NonceReader
}

type crashCounter struct {
	crashNode
	chain.Sequenced
}

type crashSigner struct {
	activities.Signer
	crash
}

func (s crashSigner) SignPayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	return around(s.crash, "SignPayment", func() (exchange.ChainAttempt, error) { return s.Signer.SignPayment(ctx, id) })
}

func (s crashSigner) OutbidPayment(ctx context.Context, id uuid.UUID, n int) (exchange.ChainAttempt, error) {
	return around(s.crash, "OutbidPayment", func() (exchange.ChainAttempt, error) { return s.Signer.OutbidPayment(ctx, id, n) })
}

type crashParking struct {
	activities.SigningStore
	crash
}

func (s crashParking) ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) error {
	return step(s.crash, "ParkChainPayment", func() error { return s.SigningStore.ParkChainPayment(ctx, id, detail) })
}

type crashRecipients struct {
	activities.RecipientStore
	crash
}

func (s crashRecipients) RecordRecipient(ctx context.Context, id uuid.UUID, said []exchange.Screening) error {
	return step(s.crash, "RecordRecipient", func() error { return s.RecipientStore.RecordRecipient(ctx, id, said) })
}

type crashSignatures struct {
	keys.PaymentStore
	crash
}

func (s crashSignatures) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return around(s.crash, "SaveSignedAttempt", func() (exchange.ChainAttempt, error) { return s.PaymentStore.SaveSignedAttempt(ctx, a) })
}

func (s crashSignatures) SaveReplacement(ctx context.Context, outbids uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return around(s.crash, "SaveReplacement", func() (exchange.ChainAttempt, error) { return s.PaymentStore.SaveReplacement(ctx, outbids, a) })
}

type crashKeys struct {
	activities.KeyMaker
	crash
}

func (s crashKeys) CreateKey(ctx context.Context, walletID uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	s.point("before:CreateKey")
	address, key, err := s.KeyMaker.CreateKey(ctx, walletID, n)
	s.point("after:CreateKey")
	return address, key, err
}

type crashWallets struct {
	activities.WalletStore
	crash
}

func (s crashWallets) CreateWallet(ctx context.Context, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	return around(s.crash, "CreateWallet", func() (exchange.Wallet, error) { return s.WalletStore.CreateWallet(ctx, r, address, key) })
}
