package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func (s *Store) CreateUser(ctx context.Context, u exchange.User, c exchange.Credentials, by exchange.Principal) (exchange.User, error) {
	panic("unwritten")
}

func (s *Store) User(ctx context.Context, id uuid.UUID) (exchange.User, error) {
	panic("unwritten")
}

func (s *Store) UserByEmail(ctx context.Context, email string) (exchange.User, error) {
	panic("unwritten")
}

func (s *Store) UserByPhone(ctx context.Context, phone exchange.Phone) (exchange.User, error) {
	panic("unwritten")
}

func (s *Store) CredentialsOf(ctx context.Context, userID uuid.UUID) (exchange.Credentials, error) {
	panic("unwritten")
}

func (s *Store) SetPIN(ctx context.Context, userID uuid.UUID, pinHash string, by exchange.Principal) error {
	panic("unwritten")
}

func (s *Store) ListUsers(ctx context.Context, f UserFilter, p Page) ([]exchange.User, int, error) {
	panic("unwritten")
}

func (s *Store) CountUsers(ctx context.Context, role exchange.Role) (int, error) {
	panic("unwritten")
}

func (s *Store) UpdateUser(ctx context.Context, id uuid.UUID, patch UserPatch, by exchange.Principal) (exchange.User, error) {
	panic("unwritten")
}

func (s *Store) CreateSession(ctx context.Context, n Session) error {
	panic("unwritten")
}

func (s *Store) RotateSession(ctx context.Context, oldHash [32]byte, next Session) (exchange.User, Session, error) {
	panic("unwritten")
}

func (s *Store) RevokeSession(ctx context.Context, familyID uuid.UUID, by exchange.Principal) error {
	panic("unwritten")
}

func (s *Store) RevokeAllSessions(ctx context.Context, userID uuid.UUID, by exchange.Principal) error {
	panic("unwritten")
}

func (s *Store) AuthState(ctx context.Context, userID, familyID uuid.UUID) (AuthState, error) {
	panic("unwritten")
}

func (s *Store) LoginFailure(ctx context.Context, key string, limit int, base time.Duration) (time.Time, error) {
	panic("unwritten")
}

func (s *Store) LoginLocked(ctx context.Context, keys ...string) (time.Time, error) {
	panic("unwritten")
}

func (s *Store) LoginSuccess(ctx context.Context, key string) error {
	panic("unwritten")
}

func (s *Store) IdempotencyBegin(ctx context.Context, scope, key string, bodyHash [32]byte) (IdempotencyRecord, error) {
	panic("unwritten")
}

func (s *Store) IdempotencyFinish(ctx context.Context, scope, key string, status int, header map[string]string, body []byte) error {
	panic("unwritten")
}

func (s *Store) IdempotencyAbandon(ctx context.Context, scope, key string) error {
	panic("unwritten")
}

func (s *Store) CreateOffer(ctx context.Context, o exchange.Offer, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) Offer(ctx context.Context, v View, id uuid.UUID) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) ListOffers(ctx context.Context, v View, f OfferFilter, p Page) ([]exchange.Offer, int, error) {
	panic("unwritten")
}

func (s *Store) PatchOffer(ctx context.Context, v View, id uuid.UUID, patch OfferPatch, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) PublishOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) PauseOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) ResumeOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) CloseOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) SuspendOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) UnsuspendOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	panic("unwritten")
}

func (s *Store) DeleteOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) error {
	panic("unwritten")
}

func (s *Store) OpenOrder(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	panic("unwritten")
}

func (s *Store) Order(ctx context.Context, v View, id uuid.UUID) (exchange.Order, error) {
	panic("unwritten")
}

func (s *Store) ListOrders(ctx context.Context, v View, f OrderFilter, p Page) ([]exchange.Order, int, error) {
	panic("unwritten")
}

func (s *Store) SearchOrders(ctx context.Context, v View, query string, p Page) ([]exchange.Order, int, error) {
	panic("unwritten")
}

func (s *Store) SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error {
	panic("unwritten")
}

func (s *Store) CloseOrder(ctx context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, by exchange.Principal) (exchange.Order, error) {
	panic("unwritten")
}

func (s *Store) CompleteOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	panic("unwritten")
}

func (s *Store) RefundOrder(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) BeginAttempt(ctx context.Context, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	panic("unwritten")
}

func (s *Store) Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	panic("unwritten")
}

func (s *Store) OpenAttempt(ctx context.Context, orderID uuid.UUID) (exchange.PaymentAttempt, bool, error) {
	panic("unwritten")
}

func (s *Store) AttemptByToken(ctx context.Context, token string) (exchange.PaymentAttempt, error) {
	panic("unwritten")
}

func (s *Store) RecordSubmission(ctx context.Context, attemptID uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	panic("unwritten")
}

func (s *Store) RecordFailure(ctx context.Context, attemptID uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	panic("unwritten")
}

func (s *Store) SaveCallback(ctx context.Context, c exchange.MomoCallback) error {
	panic("unwritten")
}

func (s *Store) Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error) {
	panic("unwritten")
}

func (s *Store) SaveReceipt(ctx context.Context, o exchange.Observation) error {
	panic("unwritten")
}

func (s *Store) ReceiptsFor(ctx context.Context, reference string) ([]exchange.Observation, error) {
	panic("unwritten")
}

func (s *Store) AcceptPayment(ctx context.Context, attemptID uuid.UUID, o exchange.Observation, now time.Time) (PaymentOutcome, error) {
	panic("unwritten")
}

func (s *Store) ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, exchange.SealedKey, error) {
	panic("unwritten")
}

func (s *Store) LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	panic("unwritten")
}

func (s *Store) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	panic("unwritten")
}

func (s *Store) RecordBroadcast(ctx context.Context, attemptID uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) RecordVanished(ctx context.Context, attemptID uuid.UUID) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) RecordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) ParkChainPayment(ctx context.Context, paymentID uuid.UUID, detail string) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) RetryChainPayment(ctx context.Context, paymentID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	panic("unwritten")
}

func (s *Store) Refund(ctx context.Context, id uuid.UUID) (exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) ListRefunds(ctx context.Context, f RefundFilter, p Page) ([]exchange.Refund, int, error) {
	panic("unwritten")
}

func (s *Store) BeginRefundPayout(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	panic("unwritten")
}

func (s *Store) CompleteRefund(ctx context.Context, refundID, attemptID uuid.UUID, o exchange.Observation) (exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) FailRefund(ctx context.Context, refundID uuid.UUID, detail string) (exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) (exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) RefundException(ctx context.Context, exceptionID uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	panic("unwritten")
}

func (s *Store) Exception(ctx context.Context, id uuid.UUID) (exchange.PaymentException, error) {
	panic("unwritten")
}

func (s *Store) ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) (exchange.PaymentException, error) {
	panic("unwritten")
}

func (s *Store) ListExceptions(ctx context.Context, f ExceptionFilter, p Page) ([]exchange.PaymentException, int, error) {
	panic("unwritten")
}

func (s *Store) SaveCommand(ctx context.Context, c exchange.OperatorCommand, by exchange.Principal) error {
	panic("unwritten")
}

func (s *Store) UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error) {
	panic("unwritten")
}

func (s *Store) CreateWallet(ctx context.Context, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	panic("unwritten")
}

func (s *Store) Wallet(ctx context.Context, v View, id uuid.UUID) (exchange.Wallet, error) {
	panic("unwritten")
}

func (s *Store) ListWallets(ctx context.Context, v View, f WalletFilter, p Page) ([]exchange.Wallet, int, error) {
	panic("unwritten")
}

func (s *Store) DefaultWallet(ctx context.Context, ownerID uuid.UUID, network exchange.Network) (exchange.Wallet, error) {
	panic("unwritten")
}

func (s *Store) SetDefaultWallet(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Wallet, error) {
	panic("unwritten")
}

func (s *Store) WalletBalances(ctx context.Context, walletID uuid.UUID) ([]exchange.Account, error) {
	panic("unwritten")
}

func (s *Store) ListMerchants(ctx context.Context, v View, p Page) ([]exchange.User, int, error) {
	panic("unwritten")
}

func (s *Store) Merchant(ctx context.Context, v View, id uuid.UUID) (exchange.Merchant, error) {
	panic("unwritten")
}

func (s *Store) VerifyAudit(ctx context.Context) error {
	panic("unwritten")
}
