package workflows_test

import (
	"context"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

func (m *market) OpenOffRamp(_ context.Context, r exchange.OrderRequest, _ exchange.Principal) (exchange.Order, error) {
	return step(m, "OpenOffRamp", func() (exchange.Order, error) {
		if m.order.ID == r.ID {
			return m.order, nil
		}
		if m.exhausted > m.provisioned {
			return exchange.Order{}, exchange.Errorf(exchange.CodeEscrowExhausted, "every address is in use")
		}
		m.lease = true
		m.order = exchange.Order{
			ID: r.ID, CustomerID: r.CustomerID, Type: r.Type, Network: exchange.Tron, Asset: money.USDT, Rate: rate,
			Price: exchange.SellByCrypto(r.Crypto, rate), Status: exchange.OrderPending, StatusDetail: exchange.WaitDeposit,
			EscrowAddress: "TEscrow", PaymentMethod: r.Method(), ExpiresAt: r.ExpiresAt, VendorID: r.Seen.MerchantID,
		}
		return m.order, nil
	})
}

// move changes the order's status where the state machine allows it.
func (m *market) move(to exchange.OrderStatus, detail string) error {
	if m.order.Status != to {
		if err := exchange.OffRampMachine.Allow(m.order.Status, to); err != nil {
			return err
		}
	}
	m.order.Status, m.order.StatusDetail = to, detail
	return nil
}

func (m *market) CloseOffRamp(_ context.Context, _ uuid.UUID, detail string, _ exchange.Principal) (exchange.Order, error) {
	return step(m, "CloseOffRamp", func() (exchange.Order, error) {
		if m.order.Status == exchange.OrderCancelled {
			return m.order, nil
		}
		for _, d := range m.deposits {
			if d.Status == exchange.DepositSeen || (d.Status == exchange.DepositFinal && m.claims[d.ID] == "") {
				return m.order, conflict("a deposit is on its way")
			}
		}
		if m.order.Status != exchange.OrderPending || (m.request.FundWalletID != uuid.Nil && !m.givenUp) {
			return m.order, conflict("the order is %s", m.order.Status)
		}
		m.lease = false
		return m.order, m.move(exchange.OrderCancelled, detail)
	})
}

func (m *market) OrderByID(context.Context, uuid.UUID) (exchange.Order, error) {
	return step(m, "OrderByID", func() (exchange.Order, error) { return m.order, nil })
}

func (m *market) ChainDeposit(_ context.Context, id uuid.UUID) (exchange.ChainDeposit, error) {
	return step(m, "ChainDeposit", func() (exchange.ChainDeposit, error) {
		d, ok := m.deposits[id]
		if !ok {
			return d, notFound("deposit")
		}
		return d, nil
	})
}

func (m *market) OffRampDeposits(context.Context, uuid.UUID) ([]uuid.UUID, error) {
	return step(m, "OffRampDeposits", func() ([]uuid.UUID, error) {
		var ids []uuid.UUID
		for id, d := range m.deposits {
			fresh := d.Status == exchange.DepositSeen && m.order.Status == exchange.OrderPending
			gone := d.Status == exchange.DepositOrphaned && m.order.Status == exchange.OrderConfirming
			if fresh || gone || (d.Status == exchange.DepositFinal && m.claims[id] == "") {
				ids = append(ids, id)
			}
		}
		return ids, nil
	})
}

func (m *market) SeeDeposit(_ context.Context, _, id uuid.UUID) (exchange.Order, error) {
	return step(m, "SeeDeposit", func() (exchange.Order, error) {
		d := m.deposits[id]
		switch {
		case d.Status != exchange.DepositSeen:
			return m.order, conflict("the deposit is %s", d.Status)
		case m.order.Status != exchange.OrderPending || d.Amount.Asset() != m.order.Asset:
			return m.order, nil
		}
		return m.order, m.move(exchange.OrderConfirming, exchange.WaitDepositFinality)
	})
}

func (m *market) LoseDeposit(_ context.Context, _, id uuid.UUID) (exchange.Order, error) {
	return step(m, "LoseDeposit", func() (exchange.Order, error) {
		if d := m.deposits[id]; d.Status != exchange.DepositOrphaned {
			return m.order, conflict("the deposit is %s", d.Status)
		}
		for _, d := range m.deposits {
			if d.Status == exchange.DepositSeen {
				return m.order, nil
			}
		}
		if m.order.Status != exchange.OrderConfirming {
			return m.order, nil
		}
		return m.order, m.move(exchange.OrderPending, exchange.WaitDeposit)
	})
}

// The offer of these tests takes between 5 and 20.
var least, most = money.Must(money.USDT, "5"), money.Must(money.USDT, "20")

func (m *market) TakeDeposit(_ context.Context, _, id uuid.UUID) (exchange.DepositTaken, error) {
	return step(m, "TakeDeposit", func() (exchange.DepositTaken, error) {
		d := m.deposits[id]
		taken := func(v exchange.DepositVerdict, err error) (exchange.DepositTaken, error) {
			m.claims[id] = v
			return exchange.DepositTaken{Verdict: v, Order: m.order}, err
		}
		waits := m.order.Status == exchange.OrderPending || m.order.Status == exchange.OrderConfirming
		switch {
		case d.Status != exchange.DepositFinal:
			return exchange.DepositTaken{Order: m.order}, conflict("the deposit is %s", d.Status)
		case m.claims[id] != "" || !m.lease:
			out := exchange.DepositTaken{Verdict: exchange.TakenKnown, Order: m.order}
			if m.claims[id] == exchange.TakenMismatch {
				out.Refund.ID = refundOfSale
			}
			return out, nil
		case d.Amount.Asset() != m.order.Asset:
			return taken(exchange.TakenWrongAsset, nil)
		case !waits:
			return taken(exchange.TakenDuplicate, nil)
		}
		if err := m.move(exchange.OrderConfirming, exchange.WaitDepositFinality); err != nil {
			return exchange.DepositTaken{}, err
		}
		if d.Amount.Cmp(least) < 0 || d.Amount.Cmp(most) > 0 {
			err := m.move(exchange.OrderFailed, exchange.DetailMismatch)
			out, _ := taken(exchange.TakenMismatch, nil)
			out.Refund.ID = refundOfSale
			return out, err
		}
		verdict := exchange.TakenExact
		if !d.Amount.Equal(m.order.Price.Crypto) {
			verdict, m.order.Price = exchange.TakenRepriced, exchange.SellByCrypto(d.Amount, m.order.Rate)
		}
		err := m.move(exchange.OrderProcessing, exchange.WaitScreening)
		return taken(verdict, err)
	})
}

var refundOfSale = uuid.MustParse("0192f0a0-0000-7000-8000-00000000ee01")

func (m *market) ScreenTerms(context.Context, uuid.UUID) ([]exchange.Counterparty, error) {
	return step(m, "ScreenTerms", func() ([]exchange.Counterparty, error) {
		var senders []exchange.Counterparty
		for id, v := range m.claims {
			if v == exchange.TakenExact || v == exchange.TakenRepriced {
				senders = append(senders, exchange.Counterparty{DepositID: id, Network: exchange.Tron, Address: "TSender"})
			}
		}
		return senders, nil
	})
}

func (m *market) RecordDepositScreening(context.Context, uuid.UUID, []exchange.Screening) error {
	_, err := step(m, "RecordDepositScreening", func() (struct{}, error) { return struct{}{}, nil })
	return err
}

func (m *market) Denied(context.Context, exchange.Network, string) (bool, error) {
	return step(m, "Denied", func() (bool, error) { return false, nil })
}

// Screen is the screening service.
func (m *market) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := pick(m.said, m.asked+1, exchange.VerdictClear)
	m.asked++
	return exchange.Screening{Screener: "service", Verdict: v}, nil
}

func (m *market) escrowRoom(context.Context, activities.EscrowRoomInput) (activities.Room, error) {
	return step(m, "EscrowRoom", func() (activities.Room, error) {
		if m.full {
			return activities.Room{}, nil
		}
		return activities.Room{MayProvision: true, Make: []uuid.UUID{refundOfSale}}, nil
	})
}

func (m *market) makeWallet(_ context.Context, r exchange.WalletRequest) (activities.MadeWallet, error) {
	return step(m, "MakeWallet", func() (activities.MadeWallet, error) {
		m.provisioned++
		return activities.MadeWallet{WalletID: r.ID, Address: "TNew"}, nil
	})
}

func (m *market) releaseEscrow(ctx context.Context, _ activities.OrderInput) error {
	_, err := step(m, "ReleaseEscrow", func() (struct{}, error) {
		if !exchange.OffRampMachine.Terminal(m.order.Status) || (m.order.Status == exchange.OrderCompleted && m.swept != 1) ||
			(m.order.Status == exchange.OrderFailed && m.refunded+m.swept != 1) {
			return struct{}{}, conflict("the crypto is still there")
		}
		for id, d := range m.deposits {
			if d.Status == exchange.DepositFinal && m.claims[id] == "" {
				m.claims[id] = exchange.TakenDuplicate
			}
		}
		m.lease = false
		return struct{}{}, nil
	})
	return activities.Failure(ctx, err)
}

var sweepPayment = uuid.MustParse("0192f0a0-0000-7000-8000-00000000ee02")

func (m *market) approveSweep(ctx context.Context, _ activities.OrderInput) (activities.PaymentApproved, error) {
	out, err := step(m, "ApproveSweep", func() (activities.PaymentApproved, error) {
		if m.order.Status != exchange.OrderCompleted && !m.kept {
			return activities.PaymentApproved{}, conflict("the order is %s", m.order.Status)
		}
		return activities.PaymentApproved{PaymentID: sweepPayment}, nil
	})
	return out, activities.Failure(ctx, err)
}

func (m *market) openRefund(ctx context.Context, _ activities.OpenChainRefundInput) (activities.RefundOpened, error) {
	out, err := step(m, "OpenChainRefund", func() (activities.RefundOpened, error) {
		if m.refusals > 0 {
			m.refusals--
			return activities.RefundOpened{}, conflict("a payout may still pay")
		}
		err := m.move(exchange.OrderFailed, exchange.DetailRefundOpen)
		return activities.RefundOpened{RefundID: refundOfSale, OrderState: activities.OrderState{
			OrderID: m.order.ID, Status: m.order.Status, Detail: m.order.StatusDetail,
		}}, err
	})
	return out, activities.Failure(ctx, err)
}

// approveRefund has the refund sent, once it has cooled off.
func (m *market) approveRefund(ctx context.Context, in activities.ChainRefundInput) (activities.ChainRefundState, error) {
	out, err := step(m, "ApproveRefundPayment", func() (activities.ChainRefundState, error) {
		s := activities.ChainRefundState{Status: exchange.RefundPending, Network: exchange.Tron}
		switch {
		case m.kept:
			s.Status = exchange.RefundCompleted
		case m.refunded > 0:
			s.Status, s.PaymentID = exchange.RefundCompleted, in.RefundID
		case m.waits != "":
			s.Wait = m.waits
		default:
			s.Status, s.PaymentID = exchange.RefundProcessing, in.RefundID
		}
		return s, nil
	})
	return out, activities.Failure(ctx, err)
}

var fundingPayment = uuid.MustParse("0192f0a0-0000-7000-8000-00000000ee03")

func (m *market) approveFunding(ctx context.Context, _ activities.OrderInput) (activities.PaymentApproved, error) {
	out, err := step(m, "ApproveFunding", func() (activities.PaymentApproved, error) {
		return activities.PaymentApproved{PaymentID: fundingPayment}, nil
	})
	return out, activities.Failure(ctx, err)
}

func (m *market) cancelFunding(ctx context.Context, _ activities.CancelFundingInput) error {
	_, err := step(m, "CancelFunding", func() (struct{}, error) {
		if m.signed || m.funded {
			return struct{}{}, conflict("the crypto is on its way")
		}
		m.givenUp = true
		return struct{}{}, nil
	})
	return activities.Failure(ctx, err)
}

// fundOrder is the outcome of the payment from the customer's wallet.
func (m *market) fundOrder() workflows.CryptoPayoutResult {
	reason := pick(m.funding, 1, "")
	if len(m.funding) > 0 {
		m.funding = m.funding[1:]
	}
	switch {
	case m.givenUp:
		return workflows.CryptoPayoutResult{Reason: string(workflows.ReasonPayoutSigning)}
	case reason != "":
		return workflows.CryptoPayoutResult{Reason: reason}
	}
	m.funded = true
	if err := m.move(exchange.OrderConfirming, exchange.WaitDepositFinality); err != nil {
		return workflows.CryptoPayoutResult{Reason: err.Error()}
	}
	if err := m.move(exchange.OrderProcessing, exchange.WaitScreening); err != nil {
		return workflows.CryptoPayoutResult{Reason: err.Error()}
	}
	return workflows.CryptoPayoutResult{Completed: true, TxID: "ef"}
}
