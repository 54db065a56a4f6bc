package api

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"kivuko/exchange"
)

// route is one line of the table.
type route struct {
	method  string
	path    string          // as in openapi.yaml, "{id}" for a parameter
	action  exchange.Action // what the policy must allow; empty only for public routes
	public  bool            // needs no token
	one     bool            // reads the one object of its kind, so that its path has no id
	limit   limitClass
	key     keyRule
	body    int           // bytes; defaultBody when zero
	form    bool          // takes a form with a file, which the handler reads as a stream
	timeout time.Duration // requestTimeout when zero
	handle  func(*call) error
}

// needs is what a caller of a role must have proven. Reading moves nothing.
func (r *route) needs(role exchange.Role) exchange.Needs {
	n := exchange.NeedsOf(role, r.action)
	n.StepUp = n.StepUp && r.method != get
	return n
}

const (
	get   = http.MethodGet
	post  = http.MethodPost
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// routes is the whole table. Fixed paths come before paths with parameters that would match them too.
func (s *server) routes() []route {
	return slices.Concat(s.publicRoutes(), s.userRoutes(), s.orderRoutes(), s.offerRoutes(), s.walletRoutes(),
		s.transferRoutes(), s.pricingRoutes(), s.approvalRoutes(), s.catalogRoutes(), s.exceptionRoutes(), s.refundRoutes(), s.bankRefundRoutes(), s.saleApprovalRoutes(),
		s.escrowRoutes(), s.recordRoutes(), s.c2bRoutes(), s.momoRoutes(), s.treasuryRoutes(), s.webhookRoutes(), s.parkedRoutes(), s.bankRoutes(), s.payoutAttestationRoutes(),
		s.freezeRoutes(), s.fileRoutes(), s.houseRoutes(), s.statementRoutes(), s.destinationRoutes(), s.otcRoutes(), s.withdrawalRoutes(), s.feeRoutes(), s.swapRoutes(), s.multisigRoutes(), s.proposalRoutes())
}

func (s *server) publicRoutes() []route {
	return []route{
		{method: get, path: "/healthz", public: true, limit: limitNone, handle: s.healthz},
		{method: get, path: "/readyz", public: true, limit: limitNone, handle: s.readyz},
		{method: get, path: "/metrics", public: true, limit: limitNone, handle: s.exposeMetrics},
		{method: get, path: "/openapi.json", public: true, limit: limitGeneral, handle: s.openapi},
		{method: get, path: "/docs", public: true, limit: limitGeneral, handle: s.docs},
		{method: get, path: "/docs/errors/{code}", public: true, limit: limitGeneral, handle: s.errorPage},
		{method: get, path: "/people/{page}", public: true, limit: limitGeneral, handle: s.peoplePage},
		{method: get, path: "/docs/{asset}", public: true, limit: limitGeneral, handle: s.docsAsset},
		{method: post, path: "/api/v1/users/register", public: true, limit: limitLogin, key: keyOptional, handle: s.register},
		{method: post, path: "/api/v1/users/login", public: true, limit: limitLogin, handle: s.login},
		{method: post, path: "/api/v1/users/login-pin", public: true, limit: limitLogin, handle: s.loginPIN},
		{method: post, path: "/api/v1/users/verifications", public: true, limit: limitLogin, handle: s.startVerification},
		{method: post, path: "/api/v1/users/password/reset-code", public: true, limit: limitLogin, handle: s.requestReset},
		{method: post, path: "/api/v1/users/password/reset", public: true, limit: limitLogin, handle: s.reset},
		{method: post, path: "/api/v1/users/invitations/open", public: true, limit: limitLogin, handle: s.openInvitation},
		{method: post, path: "/api/v1/users/invitations/accept", public: true, limit: limitLogin, handle: s.acceptInvitation},
		{method: post, path: "/api/v1/auth/refresh", public: true, limit: limitRefresh, handle: s.refresh},
		{method: get, path: "/api/v1/countries", public: true, limit: limitGeneral, handle: s.countries().listActive},
		{
			method: post, path: "/api/v1/callbacks/momo/{token}/{kind}", public: true, limit: limitNone,
			body: callbackBody, handle: s.momoCallback,
		},
	}
}

func (s *server) userRoutes() []route {
	const auth = "/api/v1/auth"
	return []route{
		{method: get, path: auth + "/user/me", one: true, action: exchange.ActReadSelf, limit: limitGeneral, handle: s.me},
		{method: get, path: auth + "/user/me/limits", one: true, action: exchange.ActReadSelf, limit: limitGeneral, handle: s.myLimits},
		{method: put, path: auth + "/user/id/{id}/pin", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.setPIN},
		{method: post, path: auth + "/logout", action: exchange.ActChangeSelf, limit: limitGeneral, handle: s.logout},
		{method: put, path: auth + "/user/me/password", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.changePassword},
		{method: post, path: auth + "/user/me/verifications", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.verifyContact},
		{method: post, path: auth + "/user/me/verifications/{id}/confirm", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.confirmContact},
		{method: post, path: auth + "/step-up", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.stepUp},
		{method: post, path: auth + "/step-up/options", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.stepUpOptions},
		{method: get, path: auth + "/passkeys", action: exchange.ActReadSelf, limit: limitGeneral, handle: s.listPasskeys},
		{method: post, path: auth + "/passkeys", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.addPasskey},
		{method: post, path: auth + "/passkeys/options", action: exchange.ActChangeSelf, limit: limitLogin, handle: s.passkeyOptions},
		{method: del, path: auth + "/passkeys/{id}", action: exchange.ActChangeSelf, limit: limitGeneral, handle: s.deletePasskey},
		{method: get, path: auth + "/sessions", action: exchange.ActReadSelf, limit: limitGeneral, handle: s.listSessions},
		{method: del, path: auth + "/sessions/{id}", action: exchange.ActChangeSelf, limit: limitGeneral, handle: s.deleteSession},
		{method: post, path: auth + "/sessions/revoke-all", action: exchange.ActChangeSelf, limit: limitGeneral, handle: s.revokeAll},
		{method: get, path: auth + "/users/account-status", action: exchange.ActReadUsers, limit: limitGeneral, handle: s.accountStatus},
		{method: get, path: auth + "/users/count/role/{role}", action: exchange.ActReadUsers, limit: limitGeneral, handle: s.countByRole},
		{method: get, path: auth + "/users", action: exchange.ActReadUsers, limit: limitGeneral, handle: s.listUsers},
		{method: get, path: auth + "/invitations", action: exchange.ActReadInvitations, limit: limitGeneral, handle: s.listInvitations},
		{method: post, path: auth + "/invitations", action: exchange.ActWriteUsers, limit: limitGeneral, key: keyOptional, handle: s.inviteUser},
		{method: del, path: auth + "/invitations/{id}", action: exchange.ActWithdrawInvitations, limit: limitGeneral, handle: s.withdrawInvitation},
		{method: get, path: auth + "/users/{id}", action: exchange.ActReadUsers, limit: limitGeneral, handle: s.getUser},
		{method: patch, path: auth + "/users/{id}", action: exchange.ActWriteUsers, limit: limitGeneral, handle: s.patchUser},
		{method: get, path: auth + "/merchants", action: exchange.ActReadMerchants, limit: limitGeneral, handle: s.listMerchants},
		{method: get, path: auth + "/merchants/{merchant_id}", action: exchange.ActReadMerchants, limit: limitGeneral, handle: s.getMerchant},
		{
			method: get, path: auth + "/merchants/{merchant_id}/statement", action: exchange.ActReadMerchantBooks, limit: limitSearch,
			handle: s.merchantStatement,
		},
		{
			method: post, path: auth + "/merchants/{merchant_id}/subvendors", action: exchange.ActCreateSubvendor,
			limit: limitGeneral, key: keyOptional, handle: s.createSubvendor,
		},
	}
}

func (s *server) orderRoutes() []route {
	const orders = "/api/v1/auth/orders"
	operate := func(verb string) route {
		return route{
			method: post, path: orders + "/{id}/" + verb, action: exchange.ActOperateFlows, limit: limitGeneral,
			key: keyRequired, timeout: flowTimeout, handle: s.operate(verb),
		}
	}
	return []route{
		{method: get, path: orders + "/search", action: exchange.ActReadOrders, limit: limitSearch, handle: s.searchOrders},
		{method: get, path: orders, action: exchange.ActReadOrders, limit: limitGeneral, handle: s.listOrders},
		{
			method: post, path: orders, action: exchange.ActOpenOrders, limit: limitOrderCreate, key: keyRequired,
			timeout: flowTimeout, handle: s.openOrder,
		},
		{method: get, path: orders + "/{id}", action: exchange.ActReadOrders, limit: limitGeneral, handle: s.getOrder},
		{method: get, path: orders + "/{id}/timeline", action: exchange.ActReadOrders, limit: limitGeneral, handle: s.orderTimeline},
		{
			method: post, path: orders + "/{id}/cancel", action: exchange.ActCancelOrders, limit: limitGeneral,
			key: keyOptional, timeout: flowTimeout, handle: s.cancelOrder,
		},
		{
			method: post, path: orders + "/{id}/retry-payment", action: exchange.ActRetryPayment, limit: limitOrderCreate,
			key: keyRequired, timeout: flowTimeout, handle: s.retryPayment,
		},
		{
			method: patch, path: orders + "/{id}/refund-address", action: exchange.ActRefundAddress, limit: limitGeneral,
			timeout: flowTimeout, handle: s.setRefundAddress,
		},
		{
			method: post, path: orders + "/{id}/accept-deposit", action: exchange.ActDecideDeposit, limit: limitGeneral, key: keyRequired,
			timeout: flowTimeout, handle: s.decideDeposit(exchange.IntendSaleAccept),
		},
		{
			method: post, path: orders + "/{id}/return-deposit", action: exchange.ActDecideDeposit, limit: limitGeneral, key: keyRequired,
			timeout: flowTimeout, handle: s.decideDeposit(exchange.IntendSaleReturn),
		},
		operate(verbRetry), operate(verbRefund), operate(verbResolve),
		{
			method: post, path: orders + "/{id}/correct-address", action: exchange.ActOperateFlows, limit: limitGeneral, key: keyRequired,
			handle: s.correctAddress,
		},
	}
}

func (s *server) offerRoutes() []route {
	const offers = "/api/v1/auth/offers"
	verb := func(name string, action exchange.Action, do offerVerb) route {
		return route{
			method: post, path: offers + "/{id}/" + name, action: action, limit: limitGeneral, key: keyOptional,
			handle: s.moveOffer(do),
		}
	}
	return []route{
		{method: get, path: offers, action: exchange.ActListOffers, limit: limitGeneral, handle: s.listOffers},
		{method: post, path: offers, action: exchange.ActWriteOffers, limit: limitGeneral, key: keyOptional, handle: s.createOffer},
		{method: get, path: offers + "/{id}", action: exchange.ActListOffers, limit: limitGeneral, handle: s.getOffer},
		{method: patch, path: offers + "/{id}", action: exchange.ActWriteOffers, limit: limitGeneral, handle: s.patchOffer},
		{method: del, path: offers + "/{id}", action: exchange.ActWriteOffers, limit: limitGeneral, handle: s.deleteOffer},
		verb("publish", exchange.ActWriteOffers, s.Store.PublishOffer),
		verb("pause", exchange.ActWriteOffers, s.Store.PauseOffer),
		verb("resume", exchange.ActWriteOffers, s.Store.ResumeOffer),
		verb("close", exchange.ActWriteOffers, s.Store.CloseOffer),
		verb("suspend", exchange.ActSuspendOffers, s.Store.SuspendOffer),
		verb("unsuspend", exchange.ActSuspendOffers, s.Store.UnsuspendOffer),
	}
}

func (s *server) walletRoutes() []route {
	const wallets, wallet = "/api/v1/auth/wallets", "/api/v1/auth/wallet/id/{id}"
	create := func(path string, action exchange.Action, handle func(*call) error) route {
		return route{
			method: post, path: path, action: action, limit: limitGeneral, key: keyOptional, timeout: flowTimeout, handle: handle,
		}
	}
	return []route{
		{method: get, path: wallets, action: exchange.ActReadWallets, limit: limitGeneral, handle: s.listWallets},
		create(wallets, exchange.ActCreateWallets, s.createWallet),
		create(wallets+"/owner", exchange.ActCreateWallets, s.createOwnerWallet),
		create(wallets+"/provision", exchange.ActProvisionWallets, s.provisionWallet),
		{method: get, path: wallet, action: exchange.ActReadWallets, limit: limitGeneral, handle: s.getWallet},
		{
			method: post, path: wallet + "/reopen-nonce-sequence", action: exchange.ActReopenNonceSequences, limit: limitGeneral, key: keyRequired,
			timeout: flowTimeout, handle: s.reopenNonceSequence,
		},
		{method: get, path: wallet + "/balances", action: exchange.ActReadWallets, limit: limitGeneral, handle: s.walletBalances},
		{method: get, path: wallet + "/movements", action: exchange.ActReadWallets, limit: limitGeneral, handle: s.walletMovements},
		{method: put, path: wallet + "/set-default-network", action: exchange.ActCreateWallets, limit: limitGeneral, handle: s.setDefaultWallet},
		{method: put, path: wallet + "/set-default", action: exchange.ActCreateWallets, limit: limitGeneral, handle: s.setDefaultWallet},
	}
}

func (s *server) transferRoutes() []route {
	const transfers = "/api/v1/auth/transfers"
	verb := func(name string, action exchange.Action, key keyRule, handle func(*call) error) route {
		return route{
			method: post, path: transfers + "/{id}/" + name, action: action, limit: limitGeneral, key: key, timeout: flowTimeout, handle: handle,
		}
	}
	return []route{
		{method: get, path: transfers, action: exchange.ActReadTransfers, limit: limitGeneral, handle: s.listTransfers},
		{
			method: post, path: transfers, action: exchange.ActOpenTransfers, limit: limitOrderCreate, key: keyRequired,
			timeout: flowTimeout, handle: s.openTransfer,
		},
		{method: get, path: transfers + "/{id}", action: exchange.ActReadTransfers, limit: limitGeneral, handle: s.getTransfer},
		{method: get, path: transfers + "/{id}/timeline", action: exchange.ActReadTransfers, limit: limitGeneral, handle: s.transferTimeline},
		verb("cancel", exchange.ActCancelTransfers, keyOptional, s.cancelTransfer),
		verb("approve", exchange.ActApprove, keyRequired, s.decideTransfer(exchange.Approve)),
		verb("reject", exchange.ActApprove, keyRequired, s.decideTransfer(exchange.Reject)),
		verb("payload", exchange.ActApprove, keyRequired, s.handOutTransfer),
		verb("signed-transaction", exchange.ActApprove, keyRequired, s.importTransfer),
		verb(verbRetry, exchange.ActOperateFlows, keyRequired, s.operateTransfer(verbRetry)),
		verb(verbRefund, exchange.ActOperateFlows, keyRequired, s.operateTransfer(verbRefund)),
	}
}

func (s *server) pricingRoutes() []route {
	const pricing = "/api/v1/auth/pricing"
	return []route{
		{method: get, path: pricing + "/fx-rates", action: exchange.ActReadPricing, limit: limitGeneral, handle: s.listRates},
		{method: post, path: pricing + "/fx-rates", action: exchange.ActWritePricing, limit: limitGeneral, key: keyOptional, handle: s.enterRate},
		{method: get, path: pricing + "/profiles", action: exchange.ActReadPricing, limit: limitGeneral, handle: s.listProfiles},
		{method: post, path: pricing + "/profiles", action: exchange.ActWritePricing, limit: limitGeneral, key: keyOptional, handle: s.enterProfile},
		{method: get, path: pricing + "/bank-days", action: exchange.ActReadPricing, limit: limitGeneral, handle: s.listBankDays},
		{method: post, path: pricing + "/bank-days", action: exchange.ActWriteBankDays, limit: limitGeneral, key: keyOptional, handle: s.proposeBankDay},
		{method: get, path: pricing + "/indicative", action: exchange.ActOpenQuotes, limit: limitGeneral, handle: s.indicativePrice},
		{method: get, path: pricing + "/quotes", action: exchange.ActReadQuotes, limit: limitGeneral, handle: s.listQuotes},
		{method: post, path: pricing + "/quotes", action: exchange.ActOpenQuotes, limit: limitGeneral, key: keyOptional, handle: s.openQuote},
		{method: get, path: pricing + "/quotes/{id}", action: exchange.ActReadQuotes, limit: limitGeneral, handle: s.getQuote},
		{method: post, path: pricing + "/quotes/{id}/replay", action: exchange.ActReadPricing, limit: limitGeneral, key: keyOptional, handle: s.replayQuote},
	}
}

func (s *server) approvalRoutes() []route {
	const auth = "/api/v1/auth"
	return []route{
		{method: get, path: auth + "/approvals/pending", action: exchange.ActApprove, limit: limitGeneral, handle: s.pendingApprovals},
		{method: get, path: auth + "/approvals/changes", action: exchange.ActReadChanges, limit: limitGeneral, handle: s.listChanges},
		{method: get, path: auth + "/approvals/changes/{id}", action: exchange.ActReadChanges, limit: limitGeneral, handle: showOne(s.Store.ControlChange, changeWire)},
		{
			method: post, path: auth + "/approvals/changes/{id}/confirm", action: exchange.ActConfirmChanges, limit: limitGeneral,
			key: keyRequired, handle: s.decideChange(s.Store.ConfirmChange, false),
		},
		{
			method: post, path: auth + "/approvals/changes/{id}/reject", action: exchange.ActConfirmChanges, limit: limitGeneral,
			key: keyOptional, handle: s.decideChange(s.Store.RejectChange, true),
		},
		{method: post, path: auth + "/approvals/tokens", action: exchange.ActApprove, limit: limitLogin, handle: s.issueToken},
		{method: get, path: auth + "/deny-list", action: exchange.ActReadDenyList, limit: limitGeneral, handle: s.listDenied},
		{method: post, path: auth + "/deny-list", action: exchange.ActWriteDenyList, limit: limitGeneral, key: keyOptional, handle: s.deny},
		{method: del, path: auth + "/deny-list/{id}", action: exchange.ActWriteDenyList, limit: limitGeneral, handle: s.undeny},
		{method: get, path: auth + "/limits", one: true, action: exchange.ActReadLimits, limit: limitGeneral, handle: s.getLimits},
		{method: patch, path: auth + "/limits", action: exchange.ActWriteLimits, limit: limitGeneral, handle: s.patchLimits},
	}
}

func (s *server) catalogRoutes() []route {
	read := func(path string, action exchange.Action, handle func(*call) error) route {
		return route{method: get, path: path, action: action, limit: limitGeneral, handle: handle}
	}
	write := func(method, path string, handle func(*call) error) route {
		r := route{method: method, path: path, action: exchange.ActWriteCatalog, limit: limitGeneral, handle: handle}
		if method == post {
			r.key = keyOptional
		}
		return r
	}
	const countries, currencies = "/api/v1/auth/countries", "/api/v1/auth/fiat-currencies"
	return []route{
		read(countries, exchange.ActReadCatalog, s.countries().listActive),
		read(countries+"/admin", exchange.ActWriteCatalog, s.countries().listAll),
		write(post, countries, s.countries().create),
		read(countries+"/{id}", exchange.ActWriteCatalog, s.countries().get),
		write(patch, countries+"/{id}", s.countries().patch),
		write(del, countries+"/{id}", s.countries().delete),
		read(currencies, exchange.ActReadCatalog, s.currencies().listActive),
		read(currencies+"/admin", exchange.ActWriteCatalog, s.currencies().listAll),
		write(post, currencies, s.currencies().create),
		read(currencies+"/{id}", exchange.ActWriteCatalog, s.currencies().get),
		write(patch, currencies+"/{id}", s.currencies().patch),
		write(del, currencies+"/{id}", s.currencies().delete),
	}
}

func (s *server) exceptionRoutes() []route {
	read := func(path string, handle func(*call) error) route {
		return route{method: get, path: "/api/v1/auth/" + path, action: exchange.ActReadExceptions, limit: limitGeneral, handle: handle}
	}
	settle := func(verb string, handle func(*call) error) route {
		return route{
			method: post, path: "/api/v1/auth/payment-exceptions/{id}/" + verb, action: exchange.ActSettleExceptions, limit: limitGeneral,
			key: keyRequired, timeout: flowTimeout, handle: handle,
		}
	}
	return []route{
		read("payment-exceptions", s.listExceptions),
		read("payment-exceptions/{id}", s.showException),
		read("refunds", s.listRefunds),
		read("refunds/{id}", s.showRefund),
		settle("accept", s.settleException(exchange.ExcAccepted)),
		settle("write-off", s.settleException(exchange.ExcWrittenOff)),
		settle("credit", s.settleException(exchange.ExcCredited)),
		settle("refund", s.refundException),
	}
}

func (s *server) recordRoutes() []route {
	read := func(path string, action exchange.Action, handle func(*call) error) route {
		return route{method: get, path: "/api/v1/auth/" + path, action: action, limit: limitGeneral, handle: handle}
	}
	return []route{
		read("events", exchange.ActReadEvents, s.listEvents),
		read("state-machines", exchange.ActReadMachines, s.listMachines),
		read("audit", exchange.ActReadAudit, s.listAudit),
		read("ledger/accounts", exchange.ActReadLedger, s.listAccounts),
		read("ledger/entries", exchange.ActReadLedger, s.listEntries),
		read("reconciliation", exchange.ActReconciliation, s.listDifferences),
		read("reconciliation/runs", exchange.ActReconciliation, s.listReconciliations),
		read("reconciliation/runs/{id}/items", exchange.ActReconciliation, s.reconciliationItems),
		read("reconciliation/reserves", exchange.ActReconciliation, s.listReserves),
	}
}

// checkRoutes refuses a table with a route that the policy can't decide: a route without an action that is not
// public, or with an action that the policy does not know.
func checkRoutes(table []route) error {
	var bad []error
	known, seen := exchange.Actions(), map[string]bool{}
	for _, r := range table {
		name := r.method + " " + r.path
		if r.public == (r.action != "") {
			bad = append(bad, fmt.Errorf("route %s must have an action or be public", name))
		}
		if r.action != "" && !slices.Contains(known, r.action) {
			bad = append(bad, fmt.Errorf("route %s has the action %q, which the policy does not know", name, r.action))
		}
		if seen[name] || r.limit == "" || r.handle == nil {
			bad = append(bad, fmt.Errorf("route %s is a duplicate, or has no limit or handler", name))
		}
		seen[name] = true
	}
	return errors.Join(bad...)
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// fiberPath replaces "{id}" with ":id".
func fiberPath(path string) string { return pathParameter.ReplaceAllString(path, ":$1") }
